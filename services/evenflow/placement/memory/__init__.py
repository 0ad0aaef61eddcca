"""What placement believes: the rows it must remember, what follows from them, the tables it follows."""

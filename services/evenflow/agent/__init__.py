"""The node agent: holds what is desired, states what happens, proves that what was free is free."""

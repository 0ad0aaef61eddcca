"""The strict doors: everything a person writes becomes exact values here, or is refused by the field's path."""

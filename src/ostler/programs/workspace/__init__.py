"""The programs that hold an overlay workspace mounted and run commands inside it."""

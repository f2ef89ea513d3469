"""What is done with the workspace of a session around its turns."""

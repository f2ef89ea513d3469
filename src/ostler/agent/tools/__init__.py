"""What models can do: each tool is an input that is checked, a description, and a function."""

"""What makes machines for runners on demand."""

"""What is measured when asked: one subject a file, from kernel bytes to readings."""

"""NVIDIA's management library: GPUs as plain data, asked in a thread of its own."""

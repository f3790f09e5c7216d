"""Where readings and events go: one wire a file. Nothing here reads the kernel."""

"""The kernel's interfaces, one file each: they read, hold no opinion and import nothing of ours."""

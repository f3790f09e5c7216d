"""The kernel's own witnesses: one file a source, each says what it saw and judges nothing."""

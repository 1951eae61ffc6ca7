"""Reading a kernel for review: what it calls, in order."""

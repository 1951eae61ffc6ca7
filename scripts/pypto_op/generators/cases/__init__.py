"""Cases of a suite: sizes and values that break kernels, and calls that a wrapper refuses."""

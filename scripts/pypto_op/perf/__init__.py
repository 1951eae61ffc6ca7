"""Timing of kernels that are known to be right."""

"""Runs of a candidate: lanes, further calls, and what other calls and other kernels show."""

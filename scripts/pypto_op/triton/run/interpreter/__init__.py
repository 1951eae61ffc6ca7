"""Triton's interpreter, mended and made faster, and what devices do otherwise."""

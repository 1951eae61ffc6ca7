"""Files that are generated beside the suite: tests, the integrated kernel, its README."""

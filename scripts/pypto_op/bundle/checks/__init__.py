"""One module a kind of reference; each offers `check(...)`, which yields findings."""

"""The story that `make demo` tells: one operator from request to verdict, with faults planted on the way."""

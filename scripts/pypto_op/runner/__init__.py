"""The team without a terminal: agents on the Messages API, the same pages, guards, tools and gates as in a harness."""

"""`make bench`: one module per room, each with `run(quick) -> list[Table]`; see `benchmarks.table`."""

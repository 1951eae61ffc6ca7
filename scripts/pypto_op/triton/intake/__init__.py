"""From a public task (`Model`, `get_inputs`, `get_init_inputs`) to a folder that `verify` takes."""

"""The debugger's tools, one module for each: what a failure left behind, read by code; `commands` is their entry."""

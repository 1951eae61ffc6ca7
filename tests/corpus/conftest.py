# The corpus holds material, some of it named like tests; pytest must not run it.
collect_ignore_glob = ["*"]

#!/usr/bin/env python3
"""Write probed kernel, recording golden and run_snapshot_bisect.sh for a manifest: `pypto-op debug snapshot-generate`."""

import os
import sys

if __name__ == "__main__":
    try:
        os.execvp("pypto-op", ["pypto-op", "debug", "snapshot-generate", *sys.argv[1:]])
    except FileNotFoundError:
        sys.exit("pypto-op is not on PATH; start this file where it is")

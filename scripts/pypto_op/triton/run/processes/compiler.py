"""Makes ready what Triton's compiler needs at the first launch of a process and what is the same in each: forks find it there.

Importing this module does it. Triton's cache hashes the whole library for the names of its files, 300 MB or so, and keeps the
result; on a machine with fast cores that takes half a second.
"""

from __future__ import annotations

import contextlib

with contextlib.suppress(ImportError, OSError):  # an older Triton has it elsewhere: then the first launch does it
    from triton.runtime.cache import triton_key

    triton_key()

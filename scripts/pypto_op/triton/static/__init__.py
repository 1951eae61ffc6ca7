"""Static check of a Triton implementation: what `ModelNew.forward` would do, without running any of it.

A small abstract interpreter over libcst: it executes the module, then `forward`, on kinds of values instead of values
(`values`), follows every call into the code that the file brings along (`calls`), and denies by default what it does
not know (`policy.yaml`). A launch counts where it is reached, and where what it wrote reaches the return value.
"""

# demo: to be written
# PYPTO_PENDING_STUB

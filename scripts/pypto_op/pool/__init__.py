"""Where jobs run: on this machine, or on a Ray cluster. One interface, `pool.Pool`; docs/pool.md says how it behaves.

A job is a case's lane, a mutant, a candidate. `crew` hands jobs to hands, `local` and `fleet` make hands, `servant` is what a
hand outside this process does, and `leases` keeps two processes off one device.
"""

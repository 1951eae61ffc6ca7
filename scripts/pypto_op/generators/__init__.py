"""Generators write what a script can derive from an operator's documents, so that no agent writes it by hand.

operator/    what is known before there is a suite: documents, the golden's source, what its inputs mean
cases/       sizes and values that break kernels, as cases of a suite
rehearsing/  each case tried on the golden, before anybody sees it
writing/     the other files: tests, the integrated kernel, its README
evaluation.py  `pypto-op harness new`: inputs, suite and runner
commands.py  the command line
"""

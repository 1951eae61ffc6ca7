"""What a script can derive, no agent writes by hand: the evaluation harness, the tests, the integrated kernel.

generated.py   files with a stamp (documents/stamps.py): which of ours were edited, and what may be written again
sources.py     what the generators work from: SPEC.md, interfaces, golden, tile sizes
contractions.py weights: inputs that the golden's products sum over, drawn smaller
suite.py       the cases of a first eval/adversarial_suite.json
rehearsal.py   tries each case on the golden, and drops or mends those that say nothing
evaluation.py  `pypto-op harness new`: test_inputs.py, adversarial_suite.json, adversarial_runner.py
tests.py       `pypto-op tests new`: the tests of the modules and of the operator
integration.py `pypto-op cleanup`: <op>_impl.py and README.md from the last staged impl (renaming.py, readme.py)
"""

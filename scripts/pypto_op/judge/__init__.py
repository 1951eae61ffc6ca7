"""The judge: it owns inputs, goldens, comparison and verdict, and never imports candidate code.

subject.py   which file is judged against which golden, at which boundary
inputs.py    the trials of a case: its seeds, its inputs
plan.py      what a run is asked to do; runner.py: runs cases, in parallel, each mode in its own process
verdict.py   one run -> status, reasons, category (reasons.py: the table)
redaction.py keeps goldens and input values out of what others read
summary.py   many verdicts -> status per mode, fingerprint, first failure
report.py    evaluation_report.json: allow-list, schema, atomic write
calling.py   which primary inputs a wrapper or golden takes
references.py the golden's side: inputs, answers, twins, probes; inspection.py: probes per iteration
adversarial.py the names of every eval/adversarial_runner.py
selftest.py  is the harness fit to judge? (planted_faults.py); sweep.py, compose.py: across boundaries
verify.py    all of it in order; commands.py and display.py: the command line
"""

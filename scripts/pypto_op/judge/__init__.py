"""The judge decides whether an operator's kernel is right. It owns inputs, goldens and comparison, and imports no candidate code.

cases/      what is judged: documents, suite, seeds and inputs of each case
answers/    what is right: the golden's answer, and whether an output is that
running/    calls of the candidate: which cases share a process, further calls, kernels that compute nothing
findings/   what was found: records, reasons, their summary, and what is kept from readers
reporting/  what is told: evaluation_report.json, the screen, the next command
self_test/  whether a suite is fit to judge, before any kernel exists
verify.py   all of it in order; `commands.py` is the command line
sweep.py    which of the modules M_1..M_K is wrong first
compose.py  whether the modules together are the operator
"""

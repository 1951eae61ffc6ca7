"""How strong is a suite? Wrong kernels are made from the right one, and the suite has to refuse them.

    source -> program (what is the kernel) -> operators (one fault each) -> mutants
           -> hunt (the judge, trial by trial, until one refuses) -> likeness (what differs at all) -> report

The verdict on a mutant is the judge's own (`judge.answers.verdict.judge_run`), on the operator's own suite and golden.
"""

"""A Triton implementation is judged by running it beside the task's reference, each in a process of its own.

processes/    what runs in the two processes, and the judge's ends of them
inputs/       inputs as the task draws them, and moved so that faults show
judging/      whether outputs are right, and whether kernels computed them
watching/     what is seen, and refused, while the implementation runs
interpreter/  Triton's interpreter, mended
setup/        what is asked, where it runs, where results lie
verify.py     the way in; passes.py: the main passes, aside.py: those on moved inputs
"""

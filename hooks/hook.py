"""The hook program's door: checks the interpreter, finds the linter, hands over to its client.

It must start in any Python, however old, to say what is wrong; hence the plain syntax. Everything else is in
`pypto_op_lint.client`, which is imported (and so compiled once) and not run as a script.
"""

import os
import sys

_OLDEST = (3, 10)
_CANNOT = 3
"""Exit code for hook.sh: this Python cannot answer, and the event on stdin is unread."""


def _cannot(text):
    sys.stderr.write(" ".join(text.split())[:200] + "\n")
    return _CANNOT


def _without(event, text, stdin):
    """Let the program that needs no Python answer an event that was read already; return its exit code."""
    import subprocess

    here = os.environ.get("PYPTO_OP_HOOKS") or os.path.dirname(os.path.abspath(__file__))
    script = os.path.join(here, "broken.sh")
    sys.stdout.flush()
    return subprocess.run(["sh", script, event, " ".join(text.split())[:200]], input=stdin, check=False).returncode


def main():
    """Run one hook and return its exit code."""
    event = sys.argv[1] if len(sys.argv) > 1 else ""
    if sys.version_info[:2] < _OLDEST:
        return _cannot("Python 3.10 or newer is needed and %s is %d.%d" % ((sys.executable,) + tuple(sys.version_info[:2])))
    root = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    # A checkout keeps the linter in lint/; an installed wheel keeps it beside the folder that holds this one.
    for folder in (os.path.join(root, "lint"), os.path.dirname(os.path.dirname(root))):
        if os.path.isfile(os.path.join(folder, "pypto_op_lint", "client.py")):
            sys.path.insert(0, folder)
            break
    else:
        return _cannot("the linter is not beside the hooks in " + root)
    try:
        from pypto_op_lint import client
    except Exception:
        error = sys.exc_info()[1]
        return _cannot("%s: %s" % (type(error).__name__, error))
    try:
        return client.main(sys.argv[1:], root)
    except client.CannotCheck as error:
        return _without(event, str(error), client.last_event())
    except Exception:
        error = sys.exc_info()[1]
        return _without(event, "internal fault, %s: %s" % (type(error).__name__, error), client.last_event())


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # taking the interpreter down in order would cost 2 ms of every tool call

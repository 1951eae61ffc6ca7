"""The hook program's door: checks the interpreter, finds the linter, hands over to its client.

It must start in any Python, however old, to say what is wrong; hence the plain syntax. Everything else is in
`pypto_op_lint.client`, which is imported (and so compiled once) and not run as a script.
"""

import os
import sys

_OLDEST = (3, 10)


def _tell(text, event):
    """Print `text` for the person, and for the model where the event allows it, in the harness's JSON."""
    text = "pypto-op hooks did nothing: " + text + " The state gates check every file again."
    quoted = '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    sys.stderr.write(text + "\n")
    if event == "post":
        context = '{"hookEventName": "PostToolUse", "additionalContext": ' + quoted + "}"
        sys.stdout.write('{"systemMessage": ' + quoted + ', "hookSpecificOutput": ' + context + "}\n")
    else:
        sys.stdout.write('{"systemMessage": ' + quoted + "}\n")


def main():
    """Run one hook and return its exit code."""
    event = sys.argv[1] if len(sys.argv) > 1 else ""
    if sys.version_info[:2] < _OLDEST:
        _tell(
            "Python 3.10 or newer is needed and this is %d.%d. " % tuple(sys.version_info[:2])
            + "Run `make setup` in the bundle, or set PYPTO_OP_PYTHON.",
            event,
        )
        return 0
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    # A checkout keeps the linter in lint/; an installed wheel keeps it beside the folder that holds this one.
    for folder in (os.path.join(root, "lint"), os.path.dirname(os.path.dirname(root))):
        if os.path.isfile(os.path.join(folder, "pypto_op_lint", "client.py")):
            sys.path.insert(0, folder)
            break
    else:
        _tell("the linter is not beside the hooks in " + root + ".", event)
        return 0
    from pypto_op_lint import client

    return client.main(sys.argv[1:], root)


def run():
    """Run `main`; a fault in it is told in one line like everything else."""
    try:
        return main()
    except Exception:
        error = sys.exc_info()[1]
        text = " ".join((type(error).__name__ + ": " + str(error)).split())[:200]
        _tell("an internal fault (" + text + "). ", sys.argv[1] if len(sys.argv) > 1 else "")
        return 0


if __name__ == "__main__":
    code = run()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # taking the interpreter down in order would cost 2 ms of every tool call

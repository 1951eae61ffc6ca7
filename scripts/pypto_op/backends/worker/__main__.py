"""`python -m pypto_op.backends.worker zygote|session DOCUMENT FD...`: started by `backends.launcher` only."""

from __future__ import annotations

import json
import sys


def main() -> None:
    """Become a zygote, or the warden of a session in a process of its own."""
    kind, document, descriptors = sys.argv[1], json.loads(sys.argv[2]), [int(word) for word in sys.argv[3:]]
    if kind == "zygote":
        from pypto_op.backends.worker import zygote

        zygote.main(document, descriptors[0])
        return
    from pypto_op.backends.worker import warden

    session, out, err, report = descriptors
    warden.guard_session(document, session, (out, err), report, forked=False)


if __name__ == "__main__":
    main()

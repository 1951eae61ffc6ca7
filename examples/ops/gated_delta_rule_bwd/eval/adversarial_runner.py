"""Compares one cumulative impl with one cumulative golden: `python adversarial_runner.py --impl FILE --up-to-module K`.

Made by `pypto-op harness new`, the same bytes for every operator, and checked against those whenever it runs: the
work, the comparison and the sanitising are the judge's (`pypto_op.judge`), so that nobody can soften them here.
"""

import os
import sys

try:
    from pypto_op.judge import adversarial
except ModuleNotFoundError as missing:
    sys.exit(f"{sys.executable} does not have {missing.name}; run this with the Python that pypto-op is installed for")

_phase_suffix = adversarial.phase_suffix
_load_truth_golden = adversarial.load_truth_golden
_resolve_impl_wrapper = adversarial.resolve_impl_wrapper
run_modes = adversarial.run_modes
_compare = adversarial.compare
_sanitize = adversarial.sanitize
_FORBIDDEN_REPORT_KEYS = adversarial.FORBIDDEN_REPORT_KEYS


def main(argv=None):
    """Run the judge with the flags of the command line; return its exit code (0 PASS, 1 FAIL, 2 contract, 3 machine)."""
    return adversarial.main(os.path.abspath(__file__), sys.argv[1:] if argv is None else argv)


if __name__ == "__main__":
    sys.exit(main())
# pypto-op generated: 7dd36560809124dd6cf4d48e0e0e04a9d10f3583ff21b2605f287c2612a6255e

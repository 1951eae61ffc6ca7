"""Confusion table of the linter over the labelled corpus.

    python tests/lint_corpus/confusion.py [RULE ...] [--problems] [--write]

Prints per rule how many bad snippets were caught (TP) and missed (FN), and how many good ones were flagged (FP) and left
alone (TN). `--problems` lists every label that is not met, `--write` renews docs/lint-corpus.md.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[2])]

from labelled_corpus import Verdict, all_snippets, judge, page_names, snippets  # noqa: E402
from tests.markdown_cases.pages import PageError  # noqa: E402

TABLE = Path(__file__).resolve().parents[2] / "docs" / "lint-corpus.md"
_ROW = re.compile(r"^\| (?P<rule>[A-Za-z0-9]+) \| (?P<bad>\d+) \| (?P<good>\d+) \|", re.MULTILINE)
_HEAD = """# The labelled corpus of the linter

`tests/corpus/lint/<rule>.md` holds snippets that somebody labelled good or bad by what the rule is for, without looking at
the rule's code: a base once, and each snippet as an edit of it, with the reason for its label and the line on which a
finding must stand. `tests/lint_corpus/test_corpus.py` holds the linter to every label.

To add a snippet, copy the five lines of a case on the page of its rule and change them
([README.md](../tests/corpus/lint/README.md) explains them), and renew this page with

    python tests/lint_corpus/confusion.py --write

TP: bad and caught. FN: bad and missed. FP: good and flagged. TN: good and left alone. A good snippet marked `clean` must
moreover be blocked by no rule at all; "unclean" counts those that are. Page `whole` holds complete kernels that were run
and were right. Labels that the linter is known to miss carry `known_limit` with the reason.

"""


def measure(names: list[str] | None = None) -> dict[str, list[Verdict]]:
    """Return the verdicts by page, of the pages called `names` or of all."""
    wanted = {name.upper() for name in names or ()}
    # all are read before the first is judged, so that a slip shows before the wait
    pages = {page: snippets(page) for page in page_names() if not wanted or page.upper() in wanted}
    verdicts: dict[str, list[Verdict]] = {}
    with tempfile.TemporaryDirectory(prefix="lint-corpus-") as scratch:
        for page, found in pages.items():
            print(f"{page}: {len(found)} snippets", file=sys.stderr, flush=True)
            verdicts[page] = [judge(s, Path(scratch) / page / str(i)) for i, s in enumerate(found)]
    return verdicts


def table(verdicts: dict[str, list[Verdict]]) -> str:
    """Return the table in Markdown, a row a page and one for all."""
    lines = ["| rule | bad | good | TP | FN | FP | TN | wrong line | unclean |", "|---|---|---|---|---|---|---|---|---|"]
    lines += [_row(name, found) for name, found in verdicts.items()]
    lines.append(_row("total", [v for found in verdicts.values() for v in found]))
    return "\n".join(lines) + "\n"


def table_counts() -> dict[str, tuple[int, int]]:
    """Return (bad, good) of every page, from the labels alone."""
    counts = {page: Counter(s.label for s in snippets(page)) for page in page_names()}
    counts["total"] = Counter(s.label for s in all_snippets())
    return {name: (count["bad"], count["good"]) for name, count in counts.items()}


def count_columns(text: str) -> dict[str, tuple[int, int]]:
    """Read (bad, good) of every row back from a table made by `table`."""
    return {m["rule"]: (int(m["bad"]), int(m["good"])) for m in _ROW.finditer(text)}


def _row(name: str, found: list[Verdict]) -> str:
    count = Counter((v.snippet.label, v.caught) for v in found)
    cells = [
        count["bad", True] + count["bad", False],
        count["good", True] + count["good", False],
        count["bad", True],
        count["bad", False],
        count["good", True],
        count["good", False],
        sum(bool(v.misplaced) for v in found),
        sum(bool(v.unclean) for v in found),
    ]
    return f"| {name} | " + " | ".join(map(str, cells)) + " |"


def main(argv: list[str] | None = None) -> int:
    """Run the command; return 1 when a label is not met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rules", nargs="*", help="pages to look at; all when left out")
    parser.add_argument("--problems", action="store_true", help="list every label that is not met")
    parser.add_argument("--write", action="store_true", help=f"renew {TABLE.name}")
    options = parser.parse_args(argv)
    if options.write and options.rules:
        parser.error("--write needs the whole corpus")
    if nowhere := sorted({rule.upper() for rule in options.rules} - {page.upper() for page in page_names()}):
        parser.error(f"no page of tests/corpus/lint is called {', '.join(nowhere)}")
    start = time.perf_counter()
    try:
        verdicts = measure(options.rules)
    except PageError as slip:
        parser.error(str(slip))
    seconds = time.perf_counter() - start
    text = table(verdicts)
    print(text)
    print(f"{sum(map(len, verdicts.values()))} snippets in {seconds:.1f} s", file=sys.stderr)
    open_labels = [v for found in verdicts.values() for v in found if v.problem]
    if options.problems:
        for verdict in open_labels:
            known = f"  (known limit: {verdict.snippet.known_limit})" if verdict.snippet.known_limit else ""
            print(verdict.problem + known)
    if options.write:
        TABLE.write_text(_HEAD + text, encoding="utf-8")
    return int(any(not v.snippet.known_limit for v in open_labels))


if __name__ == "__main__":
    sys.exit(main())

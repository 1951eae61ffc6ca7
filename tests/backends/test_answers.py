"""What a session keeps of a golden's answers: each question once, and nothing of what has changed since."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from pypto_op.backends.answers import Answers
from pypto_op.backends.reference import ReferenceSession
from pypto_op.vocabulary import Outcome
from pypto_op.workspace import OpWorkspace

pytestmark = [pytest.mark.sim, pytest.mark.timeout(600), pytest.mark.usefixtures("numeric")]

GOLDEN = """
import helper
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

def op_golden(x, scale=1.0):
    return (x * helper.FACTOR * scale).sum(dim=-1) + float((Path(__file__).parent / "table.txt").read_text())
"""

INPUTS = """
import torch

PRIMARY_INPUT_ORDER = ["x"]
DEVICE = "cpu"

def make_inputs(case):
    return {"x": torch.full((2, 70), SHIFT + float(case["seed"]), device=DEVICE)}
"""


@pytest.fixture
def op(tmp_path: Path) -> OpWorkspace:
    root = tmp_path / "custom" / "op"
    (root / "eval").mkdir(parents=True)
    (root / "op_golden.py").write_text(GOLDEN)
    (root / "helper.py").write_text("FACTOR = 2.0\n")
    (root / "table.txt").write_text("1.0")
    (root / "eval" / "test_inputs.py").write_text(INPUTS.replace("SHIFT", "0.0"))
    return OpWorkspace(root, "op")


class Counting(ReferenceSession):
    """Counts the messages."""

    asked = 0

    def _ask(self, *words, **more):
        self.asked += 1
        return super()._ask(*words, **more)


def first(ws: OpWorkspace, session: ReferenceSession, answers: Answers, seed: int = 1, **how) -> float:
    made = [value for _, value in session.make_inputs({"id": "c", "seed": seed})]
    found = answers.ask(made, **how)
    assert found.outcome is Outcome.OK, found.detail
    return float(found.outputs[0][0])


def opened(ws: OpWorkspace, session: ReferenceSession) -> Answers:
    return Answers(session, function="op_golden", file=ws.golden)


def test_the_same_question_is_asked_once_and_several_go_with_one_message(op):
    x = torch.arange(140.0).reshape(2, 70) / 7
    ways = [{}, {"float64": True}, {"twin": "sequential"}]
    with Counting(op) as session, Counting(op) as plain:
        answers = opened(op, session)
        answers.prepare([x], ways)
        kept = [answers.ask([x], **way) for way in ways]
        answers.prepare([x], ways)
        assert session.asked == 1
        alone = [plain.golden([x], function="op_golden", file=op.golden, **way) for way in ways]
        for one, two in zip(kept, alone, strict=True):
            assert one.structure == two.structure and len(one.others) == len(two.others)
            assert torch.equal(one.outputs[0], two.outputs[0]) and one.outputs[0].dtype is two.outputs[0].dtype
        assert session.loaded() == plain.loaded()


def test_another_seed_scalar_stride_or_dtype_is_another_question(op):
    x = torch.arange(140.0).reshape(2, 70)
    square = torch.arange(4.0).reshape(2, 2)
    with ReferenceSession(op) as session:
        answers = opened(op, session)
        assert first(op, session, answers, seed=1) == 141.0
        assert first(op, session, answers, seed=2) == 281.0
        base = answers.ask([x, 1.0]).outputs[0]
        assert torch.equal(answers.ask([x, 2.0]).outputs[0] - 1, 2 * (base - 1))
        assert answers.ask([x.double(), 1.0]).outputs[0].dtype is torch.float64
        assert not torch.equal(answers.ask([square]).outputs[0], answers.ask([square.t()]).outputs[0])


def test_a_changed_golden_is_not_answered_with_the_old_ones_answer(op):
    with ReferenceSession(op) as session:
        answers = opened(op, session)
        assert first(op, session, answers) == 141.0
        op.golden.write_text(GOLDEN.replace("sum(dim=-1)", "amax(dim=-1)"))
        assert first(op, session, answers) == 3.0


def test_a_table_that_the_golden_reads_is_read_again_when_it_changed(op):
    with ReferenceSession(op) as session:
        answers = opened(op, session)
        assert first(op, session, answers) == 141.0
        (op.root / "table.txt").write_text("5.0")
        assert first(op, session, answers) == 145.0


def test_changed_inputs_are_another_question(op):
    with ReferenceSession(op) as session:
        answers = opened(op, session)
        assert first(op, session, answers) == 141.0
        op.test_inputs.write_text(INPUTS.replace("SHIFT", "1.0"))
        assert first(op, session, answers) == 281.0


def test_nothing_is_kept_from_session_to_session(op):
    with ReferenceSession(op) as session:
        assert first(op, session, opened(op, session)) == 141.0
    (op.root / "helper.py").write_text("FACTOR = 3.0\n")
    with ReferenceSession(op) as session:
        assert first(op, session, opened(op, session)) == 211.0


def test_a_failure_is_not_kept_and_one_way_that_fails_spoils_no_other(op):
    op.golden.write_text(
        "import torch\n\ndef op_golden(x):\n    if x.dtype is torch.float64:\n        raise ValueError('no')\n    return x + 1\n"
    )
    with Counting(op) as session:
        answers, x = opened(op, session), torch.ones(3)
        answers.prepare([x], [{}, {"float64": True}])
        assert answers.ask([x]).outcome is Outcome.OK and session.asked == 1
        for _ in range(2):
            assert answers.ask([x], float64=True).outcome is Outcome.EXCEPTION
        assert session.asked == 3


def test_what_is_lost_together_is_answered_alone(op):
    """A call may need for itself what several share: the time of one message, the memory of one process."""
    op.golden.write_text(
        "import os\n\nCALLS = []\n\ndef op_golden(x):\n    CALLS.append(1)\n    if len(CALLS) > 3:\n        os._exit(3)\n"
        "    return x + 1\n"
    )
    ways = [{"twin": name} for name in ("reversed", "tiled", "pairwise", "sequential", "golden")]
    with Counting(op) as session:
        answers, x = opened(op, session), torch.ones(3)
        answers.prepare([x], ways)
        assert session.asked == 1
        assert answers.ask([x], **ways[1]).outcome is Outcome.OK
        assert session.asked == 2


def test_threads_that_ask_at_once_each_get_their_own_answer(op):
    """Mutants that are judged side by side ask one golden; its process has one conversation."""
    with ReferenceSession(op) as session:
        answers = opened(op, session)
        with ThreadPoolExecutor(4) as executor:
            found = list(executor.map(lambda seed: first(op, session, answers, seed), range(24)))
    assert found == [2.0 * 70 * seed + 1.0 for seed in range(24)]

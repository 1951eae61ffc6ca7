"""Every bad input of a candidate gets a classified outcome in bounded time and leaves nothing behind.

The fixture `run` checks after each test that no process and no file is left. Each candidate is the same small,
correct kernel with one fault.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import torch

from pypto_op.backends import sim
from pypto_op.errors import ContractError
from pypto_op.vocabulary import Outcome
from pypto_op.workspace import OpWorkspace

from . import kernels
from .conftest import IMPATIENT, QUICK, Run, assert_correct
from .kernels import at_import, host_only, in_wrapper, instead

pytestmark = [pytest.mark.sim, pytest.mark.usefixtures("numeric")]

BUSY = replace(IMPATIENT, case_seconds=1)
"""For what computes until it is stopped, and is never right."""


def test_the_good_candidate_is_right_and_clean(run: Run) -> None:
    result = run(kernels.GOOD)
    assert_correct(result)
    assert (result.structure, result.launches, result.outputs_from_kernel) == ("tensor", 1, True)
    assert (result.mutated_inputs, result.aliased_inputs, result.sentinel_left) == ((), (), (0,))
    assert result.prefilled_outputs == ()
    assert result.numeric
    assert 50 < result.peak_rss_mb < 1500
    assert result.seconds > 0


# -- files that do not load -------------------------------------------------------------------------------------


def test_missing_file(operator: OpWorkspace, run: Run) -> None:
    with sim.SimBackend().open(operator.impl, "double_wrapper", operator) as session:
        result = session.run("case", [torch.zeros(2, 32)])
    assert result.outcome is Outcome.MISSING_FILE
    assert "No such file" in result.detail


@pytest.mark.parametrize(
    ("source", "outcome", "words"),
    [
        ("def f(:\n", Outcome.SYNTAX_ERROR, "double_impl.py:1: SyntaxError"),
        ("x = 1\x00", Outcome.SYNTAX_ERROR, "double_impl.py"),
        (at_import("import no_such_module_at_all"), Outcome.IMPORT_ERROR, "ModuleNotFoundError"),
        (at_import("raise ValueError('bad day')"), Outcome.IMPORT_ERROR, "ValueError: bad day"),
        (kernels.GOOD.replace("double_wrapper", "other_wrapper"), Outcome.MISSING_WRAPPER, "it has other_wrapper"),
        ("double_wrapper = 3\n", Outcome.MISSING_WRAPPER, "no function double_wrapper"),
    ],
)
def test_files_that_do_not_load(run: Run, source: str, outcome: Outcome, words: str) -> None:
    result = run(source)
    assert result.outcome is outcome
    assert words in result.detail


def test_a_file_that_does_not_load_is_not_tried_again(operator: OpWorkspace, run: Run) -> None:
    operator.impl.write_text(at_import("open('count', 'a').write('x')\nraise ValueError('no')"))
    with sim.SimBackend().open(operator.impl, "double_wrapper", operator) as session:
        results = [session.run(f"case{i}", [torch.zeros(2, 32)]) for i in range(3)]
        tried = (session.scratch / "cwd" / "count").read_text()
    assert [result.outcome for result in results] == [Outcome.IMPORT_ERROR] * 3
    assert tried == "x"


# -- processes that end, hang or swell --------------------------------------------------------------------------


@pytest.mark.parametrize("code", ["sys.exit(0)", "sys.exit('PASS')", "os._exit(0)", "os._exit(3)", "raise SystemExit"])
@pytest.mark.parametrize("place", [at_import, host_only])
def test_exits(run: Run, code: str, place: object) -> None:
    result = run(place(code))  # type: ignore[operator]
    assert result.outcome is Outcome.EXITED
    assert ("at import" in result.detail) == (place is at_import)
    assert result.outputs == []


@pytest.mark.parametrize("place", [at_import, host_only])
def test_segmentation_fault(run: Run, place: object) -> None:
    result = run(place("import ctypes; ctypes.string_at(0)"))  # type: ignore[operator]
    assert result.outcome is Outcome.CRASHED
    assert "SIGSEGV" in result.detail
    assert "double_impl.py:" in result.detail, "the line of the crash is named"


@pytest.mark.parametrize("number", ["SIGKILL", "SIGTERM", "SIGABRT", "SIGSTOP"])
def test_signals_to_itself(run: Run, number: str) -> None:
    source = host_only(f"import signal; os.kill(os.getpid(), signal.{number}); time.sleep(60)")
    result = run(source, limits=IMPATIENT)
    assert result.outcome is (Outcome.TIMED_OUT if number == "SIGSTOP" else Outcome.CRASHED)


def test_endless_loop_at_import(run: Run) -> None:
    result = run(at_import("while True: pass"), limits=IMPATIENT)
    assert result.outcome is Outcome.TIMED_OUT
    assert "did not end within 2 s" in result.detail


def test_an_endless_loop_is_told_with_its_line(run: Run) -> None:
    result = run(host_only("while True: pass"), limits=BUSY)
    assert result.outcome is Outcome.TIMED_OUT
    assert re.search(r"\.py:\d+ did not end within 1 s", result.detail), result.detail
    assert "(most recent call first)" in result.stderr


def test_endless_loop_that_ignores_signals(run: Run) -> None:
    source = host_only(
        "import signal",
        "for n in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(n, signal.SIG_IGN)",
        "while True: pass",
    )
    assert run(source, limits=BUSY).outcome is Outcome.TIMED_OUT
    assert run(source, limits=BUSY, enclose=False).outcome is Outcome.TIMED_OUT


@pytest.mark.parametrize(
    "statement",
    [
        "y = torch.ones(10 ** 13)",
        "y = [torch.ones(2 ** 24) for _ in range(200)]",
        "y = bytearray(10 ** 12)",
    ],
)
def test_out_of_memory(run: Run, statement: str) -> None:
    result = run(host_only(statement))
    assert result.outcome is Outcome.OUT_OF_MEMORY
    assert result.peak_rss_mb < 4 * QUICK.memory_mb


def test_an_exit_at_the_limit_of_memory_is_lack_of_memory(run: Run) -> None:
    held = f"resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < {int(0.95 * QUICK.memory_mb)} * 1024"
    grown = host_only(
        "import resource", "held = []", f"while {held}:", "    held.append(b'x' * 2**22)", "time.sleep(1)", "os._exit(1)"
    )
    assert run(grown).outcome is Outcome.OUT_OF_MEMORY, "pypto's calculator ends so where it gets no more"
    assert run(host_only("os._exit(1)")).outcome is Outcome.EXITED


def test_memory_of_child_processes_counts(run: Run) -> None:
    source = host_only(
        "for _ in range(4):",
        "    if os.fork() == 0:",
        "        block = b'x' * (600 * 2**20); time.sleep(60); os._exit(0)",
        "time.sleep(60)",
    )
    assert run(source).outcome is Outcome.OUT_OF_MEMORY


def test_a_fork_does_not_count_what_it_shares_twice(run: Run) -> None:
    forked = "if os.fork() == 0: time.sleep(2); os._exit(0)"
    told = run(host_only("block = b'x' * (800 * 2**20)", forked, "os.wait()")).outcome
    assert told is Outcome.FORBIDDEN, "for the fork; both together hold 1.1 of 1.5 GiB"


def test_what_earlier_calls_left_is_not_charged_to_a_later_one(operator: OpWorkspace) -> None:
    kept = "sys.modules.setdefault('kept', []).append(b'x' * (len(x) * 100 * 2**20))"
    operator.impl.write_text(host_only(kept))
    x = torch.ones(20, 32)
    with sim.SimBackend().open(operator.impl, "double_wrapper", operator, limits=QUICK) as session:
        outcomes = [session.run(str(rows), [x[:rows].clone()]).outcome for rows in (6, 9, 20, 6)]
    assert outcomes == [Outcome.OK, Outcome.OK, Outcome.OUT_OF_MEMORY, Outcome.OK], "2000 MiB are too many for any process"


@pytest.mark.parametrize("limit", ["", "sys.setrecursionlimit(10 ** 9); "])
def test_deep_recursion(run: Run, limit: str) -> None:
    result = run(host_only(f"{limit}f = lambda n: f(n + 1)", "f(0)"))
    expected = (Outcome.CRASHED, Outcome.OUT_OF_MEMORY) if limit else (Outcome.EXCEPTION,)
    assert result.outcome in expected


def test_the_next_case_gets_a_new_process(operator: OpWorkspace, run: Run) -> None:
    operator.impl.write_text(host_only("if len(x) == 7: os._exit(0)", "if len(x) == 9: raise ValueError"))
    x = torch.ones(20, 32)
    with sim.SimBackend().open(operator.impl, "double_wrapper", operator, limits=QUICK) as session:
        outcomes = [session.run(str(rows), [x[:rows].clone()]).outcome for rows in (20, 7, 20, 9, 20)]
    assert outcomes == [Outcome.OK, Outcome.EXITED, Outcome.OK, Outcome.EXCEPTION, Outcome.OK]


# -- a child that stays ----------------------------------------------------------------------------------------


STAYS = {
    "child": "os.fork() == 0 and time.sleep(600)",
    "daemon": "os.fork() == 0 and (os.setsid(), os.fork() and os._exit(0), time.sleep(600))",
    "deaf": (
        "os.fork() == 0 and (os.setsid(), "
        "[__import__('signal').signal(n, __import__('signal').SIG_IGN) for n in (1, 2, 15)], time.sleep(600))"
    ),
}


@pytest.mark.parametrize("enclose", [True, False])
@pytest.mark.parametrize("kind", sorted(STAYS))
def test_whatever_stays_is_ended(run: Run, kind: str, enclose: bool) -> None:
    """`run` checks that nothing is left."""
    assert run(host_only(STAYS[kind]), enclose=enclose).outcome is Outcome.FORBIDDEN


@pytest.mark.parametrize(
    "statement",
    [
        "__import__('threading').Thread(target=time.sleep, args=(600,)).start()",
        "__import__('concurrent.futures').futures.ThreadPoolExecutor(1).submit(time.sleep, 1)",
        "__import__('_thread').start_new_thread(time.sleep, (600,))",
        "__import__('signal').signal(14, print)",
        "os.fork() or os._exit(0)",
    ],
)
def test_code_beside_the_kernel_is_refused(run: Run, statement: str) -> None:
    """It could write the outputs while the launch is under way; `run` checks that nothing is left."""
    result = run(host_only(statement))
    assert result.outcome is Outcome.FORBIDDEN
    assert "beside the kernel" in result.detail


def test_a_forked_copy_that_returns_does_not_answer(run: Run) -> None:
    """The copy ends before it speaks; the original is refused because it made one."""
    source = host_only("child = os.fork() == 0", returns="1 / 0 if child else out")
    result = run(source)
    assert result.outcome is Outcome.FORBIDDEN and "ZeroDivisionError" not in result.stderr + result.detail


@pytest.mark.parametrize("enclose", [True, False])
def test_killing_the_parents(run: Run, enclose: bool) -> None:
    """Below name spaces they cannot be reached; without, the loss is seen, classified, and mended."""
    source = host_only("os.kill(os.getppid(), 9); time.sleep(60)")
    result = run(source, limits=IMPATIENT, enclose=enclose)
    assert result.outcome in (Outcome.CRASHED, Outcome.TIMED_OUT)
    assert_correct(run(kernels.GOOD, enclose=enclose))


def test_killing_the_zygote_without_name_spaces(run: Run) -> None:
    grandparent = "int(open(f'/proc/{os.getppid()}/stat').read().rpartition(')')[2].split()[1])"
    result = run(host_only(f"os.kill({grandparent}, 9); time.sleep(60)"), limits=IMPATIENT, enclose=False)
    assert result.outcome in (Outcome.CRASHED, Outcome.TIMED_OUT)
    assert_correct(run(kernels.GOOD, enclose=False))


# -- the answer itself ------------------------------------------------------------------------------------------


def test_closing_every_descriptor(run: Run) -> None:
    result = run(host_only("os.closerange(3, 4096)"))
    assert result.outcome is Outcome.CRASHED
    assert "channel to the judge" in result.detail


@pytest.mark.parametrize(
    "statement",
    [
        "import shutil; shutil.rmtree(os.path.dirname(os.getcwd()), ignore_errors=True)",
        "[os.remove(f.path) for f in os.scandir(os.environ['HOME']) if f.is_file()]",
    ],
)
def test_removing_the_judges_files(run: Run, statement: str) -> None:
    result = run(host_only(statement))
    assert result.outcome in (Outcome.OK, Outcome.CRASHED, Outcome.FORBIDDEN)
    if result.outcome is Outcome.OK:
        assert_correct(result)


def test_a_forged_answer_without_the_nonce(run: Run) -> None:
    """It finds the channel, says that it ran, and leaves a result file where the worker would."""
    source = instead(
        "import json, socket, glob",
        "from safetensors.torch import save_file",
        "stem = glob.glob(os.environ['HOME'] + '/inputs*.json')[0].replace('inputs', 'outputs')[:-5]",
        "save_file({'t0': (x * 2).reshape(-1)}, stem + '.safetensors')",
        "item = {'tensor': 't0', 'size': list(x.shape)}",
        "answer = {'values': [item], 'nonce': 'guess', 'outcome': 'ok', 'launches': 1}",
        "open(stem + '.json', 'w').write(json.dumps(answer))",
        "for d in range(3, 64):",
        "    try:",
        "        channel = socket.socket(fileno=os.dup(d))",
        "        channel.send(json.dumps({'event': 'ran'}).encode())",
        "        channel.send(json.dumps({'event': 'wrote'}).encode())",
        "    except OSError: pass",
        "os._exit(0)",
    )
    result = run(source)
    assert result.outcome in (Outcome.FORBIDDEN, Outcome.EXITED)
    assert result.outputs == []


def test_a_link_in_the_place_of_the_answer(run: Run) -> None:
    """The judge reads no link; the worker's own answer in its place is as good as any."""
    source = host_only(
        "import glob",
        "stem = glob.glob(os.environ['HOME'] + '/inputs*.json')[0].replace('inputs', 'outputs')[:-5]",
        "open('elsewhere', 'w').close()",
        "os.symlink(os.path.abspath('elsewhere'), stem + '.safetensors')",
    )
    result = run(source)
    if result.outcome is Outcome.OK:
        assert_correct(result)
    else:
        assert result.outputs == []


def test_endless_files(run: Run) -> None:
    source = host_only("f = open('big', 'wb')", "for n in range(4000): f.seek(n << 20); f.write(b'x'); f.flush()")
    result = run(source)
    assert result.outcome is Outcome.EXCEPTION
    assert "File too large" in result.detail


def test_an_input_that_cannot_travel(operator: OpWorkspace, run: Run) -> None:
    operator.impl.write_text(kernels.GOOD)
    with (
        sim.SimBackend().open(operator.impl, "double_wrapper", operator) as session,
        pytest.raises(ContractError, match="cannot be handed over"),
    ):
        session.run("case", [torch.ones(2) + 1j])


def test_the_session_goes_on_when_the_zygote_is_killed(operator: OpWorkspace, run: Run) -> None:
    grandparent = "int(open(f'/proc/{os.getppid()}/stat').read().rpartition(')')[2].split()[1])"
    operator.impl.write_text(in_wrapper(f"if len(x) == 7: os.kill({grandparent}, 9); time.sleep(60)"))
    backend = sim.SimBackend(enclose=False)
    with backend.open(operator.impl, "double_wrapper", operator, limits=IMPATIENT) as session:
        outcomes = [session.run(str(rows), [torch.ones(rows, 32)]).outcome for rows in (7, 20)]
    assert outcomes[0] in (Outcome.CRASHED, Outcome.TIMED_OUT)
    assert outcomes[1] is Outcome.OK


def test_a_file_that_changes_while_it_is_judged(operator: OpWorkspace, run: Run) -> None:
    operator.impl.write_text(kernels.GOOD)
    with sim.SimBackend().open(operator.impl, "double_wrapper", operator) as session:
        operator.impl.write_text(kernels.GOOD + "\n# another\n")
        result = session.run("case", [torch.ones(2, 32)])
    assert result.outcome is Outcome.IMPORT_ERROR
    assert "changed while it was being judged" in result.detail

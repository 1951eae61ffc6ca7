"""Tune sample tasks on a GPU, and time every combination of the same options, as `triton.autotune` would (tune_on_gpu.sh)."""

from __future__ import annotations

import importlib.util
import itertools
import json
import math
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from pypto_op.triton.run.setup.project import Project
from pypto_op.triton.run.setup.request import Request
from pypto_op.triton.run.verify import verify_triton
from pypto_op.tuning.triton_kernel import TritonKernel
from pypto_op.tuning.triton_tune import tune_triton

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "examples" / "triton"
SHARE = 0.25
"""Of the combinations, the most timings that the search may spend."""
SECONDS = float(os.environ.get("TUNE_SECONDS", "480"))


def main() -> None:
    """Tune the named tasks while there is time; write after each of them."""
    out, begin = Path(sys.argv[1]), time.monotonic()
    rows: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="triton-tune-") as folder:
        os.environ.setdefault("PYPTO_OP_KEY_FILE", str(Path(folder) / "seal.key"))
        for name in sys.argv[2:]:
            if time.monotonic() - begin > SECONDS * 0.8:
                rows[name] = {"skipped": "no time was left"}
                continue
            rows[name] = _task(name, Path(folder) / name, SECONDS - (time.monotonic() - begin))
            (out / "triton_tune.json").write_text(json.dumps(rows, indent=1) + "\n")
            print(name, json.dumps({key: value for key, value in rows[name].items() if key != "candidates"}), flush=True)


def _task(name: str, work: Path, left: float) -> dict[str, Any]:
    shutil.copytree(EXAMPLES / name, work)
    shutil.copyfile(HERE / "gpu_shapes" / f"{name}.json", work / "shapes.json")
    project = Project.at(work, name, "triton_ascend_impl")
    before = project.impl.read_text()
    verdict = verify_triton(project, Request(target="cuda", memory_mb=60_000))
    assert verdict["status"] == "PASS", verdict["failures"] or verdict["error"]
    kernel = TritonKernel(before)
    every = [
        dict(zip(kernel.choices, one, strict=True)) for one in itertools.product(*(c.options for c in kernel.choices.values()))
    ]
    trials = max(1, math.floor(SHARE * len(every)) - 1)  # the first timing is the implementation's own
    tuned = tune_triton(project, target="cuda", seconds=left / 2, trials=trials)
    chosen = dict(tuned.chosen.assignment) if tuned.chosen else {}
    print(f"{name}: {tuned.timings} timings in {tuned.seconds:.0f} s, {tuned.ended}, chosen {chosen}, {tuned.gain}", flush=True)
    begin, timings, refused = time.monotonic(), {}, 0
    for assignment in [{}, chosen, *every]:
        key = json.dumps(assignment, sort_keys=True)
        if key not in timings and time.monotonic() - begin < left / 2:
            try:
                timings[key] = _microseconds(work, name, kernel.write(assignment) if assignment else before)
            except Exception as error:
                refused += 1
                print(f"  {key}: {type(error).__name__}", flush=True)
    best = min(timings, key=lambda key: timings[key])
    return {
        "combinations": len(every),
        "combinations_timed": len(timings),
        "combinations_that_fail": refused,
        "timings_of_the_search": tuned.timings,
        "seconds_of_the_search": round(tuned.seconds, 1),
        "before_us": timings["{}"],
        "tuned_us": timings[json.dumps(chosen, sort_keys=True)],
        "best_us": timings[best],
        "best": json.loads(best),
        "chosen": chosen,
        "written": tuned.written,
        "candidates": [
            [one.number, one.origin, one.assignment, one.fate, one.ratio, one.reason[:200]] for one in tuned.candidates
        ],
    }


_module_number = itertools.count()


def _microseconds(work: Path, name: str, text: str) -> float:
    """Return do_bench's median of one text on the largest case of the task."""
    import torch
    from triton.testing import do_bench

    file = work / f"text_{next(_module_number)}.py"
    file.write_text(text)
    task, module = (_load(path) for path in (work / f"{name}_torch.py", file))
    torch.manual_seed(0)
    groups = list(task.get_input_groups()) if hasattr(task, "get_input_groups") else [task.get_inputs()]
    size = lambda group: sum(value.numel() for value in group if isinstance(value, torch.Tensor))  # noqa: E731
    inputs = [value.cuda() if isinstance(value, torch.Tensor) else value for value in max(groups, key=size)]
    model = module.ModelNew(*task.get_init_inputs())
    model = model.cuda() if hasattr(model, "cuda") else model
    return float(do_bench(lambda: model(*inputs), warmup=20, rep=60, return_mode="median")) * 1e3


def _load(path: Path) -> Any:
    found = importlib.util.spec_from_file_location(path.stem, path)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()

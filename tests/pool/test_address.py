"""What `--pool` takes, and what it says of the rest."""

from __future__ import annotations

import pytest
from tests.calling import command
from tests.judge.judging import CASES, place

from pypto_op.errors import ContractError
from pypto_op.pool.address import Address


def test_each_form() -> None:
    assert Address.parse("local") == Address()
    own = Address.parse("ray://local")
    assert (own.ray, own.host, own.labels) == (True, "", {})
    there = Address.parse("ray://head.example:7000?chip=910b3&rack=r1")
    assert (there.head, there.labels) == ("head.example:7000", {"chip": "910b3", "rack": "r1"})
    assert Address.parse("ray://192.0.2.7").head == "192.0.2.7:6379"
    assert Address.parse("ray://[::1]:6380").head == "[::1]:6380"


@pytest.mark.parametrize(
    "text",
    ["", "remote", "ray:/x", "ray://", "ray://a:0", "ray://a:70000", "ray://a?x", "ray://local:1", "ray://local?a=b", "http://a"],
)
def test_what_names_no_pool(text: str) -> None:
    with pytest.raises(ContractError, match="--pool"):
        Address.parse(text)


def test_a_command_refuses_it_in_one_line(tmp_path) -> None:
    ws = place("sum_diff", tmp_path, cases=CASES)
    for name in ("verify", "mutate"):
        answer = command(name, ws.root, "--pool", "elsewhere")
        assert (answer.code, len(answer.stderr.strip().splitlines())) == (2, 1)
        assert "--pool 'elsewhere' names no pool; use local, ray://local or ray://HOST" in answer.stderr


def test_a_check_without_jobs_takes_no_pool(tmp_path) -> None:
    ws = place("sum_diff", tmp_path, cases=CASES)
    answer = command("verify", ws.root, "--compose", "--pool", "ray://local")
    assert (answer.code, answer.stderr.strip()) == (2, "pypto-op: --compose takes no --pool; leave it out")

"""Which numbers a device divides by exactly: inputs whose quotients are halves tell right kernels from wrong ones there alone."""

from __future__ import annotations

import os

import pytest
import torch
from tests import program

from pypto_op.triton.run.inputs import division

IN_KERNELS = """
import torch
from pypto_op.triton.run.inputs import division
print(division.exact([7.0, 255.0], division.of_kernels(torch.device("cpu"))))
"""
NUMBERS = [7.0, 15.0, 127.0, 255.0]


def nearly(low_for: float) -> division.Divide:
    """Return a division by an approximate reciprocal, which is a step too small for one number."""

    def divide(x: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
        reciprocal = 1 / by
        return x * torch.where(by == low_for, torch.nextafter(reciprocal, torch.zeros(())), reciprocal)

    return divide


def test_a_device_that_divides_exactly_is_asked_about_all() -> None:
    assert division.exact(NUMBERS, torch.div) == NUMBERS


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_that_a_device_divides_by_nearly_is_left_out(number: float) -> None:
    assert division.exact(NUMBERS, nearly(number)) == [other for other in NUMBERS if other != number]


def test_where_a_power_of_two_is_not_exact_no_number_is() -> None:
    assert division.exact(NUMBERS, nearly(0.25)) == []


def test_kernels_divide_in_the_interpreter_as_torch_does() -> None:
    run = program.with_torch("-c", IN_KERNELS, env={**os.environ, "TRITON_INTERPRET": "1"})
    assert run.stdout.strip() == "[7.0, 255.0]", run.stderr


def test_divisors_are_whole_codes_that_float32_inverts() -> None:
    assert division.divisors([0.5, 3.0, 41.0, 1e6]) == sorted({*NUMBERS, 3.0} | ({41.0} & set(division.divisors([41.0]))))
    assert 0.5 not in division.divisors([0.5]) and 1e6 not in division.divisors([1e6])

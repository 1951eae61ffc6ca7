"""Lines are those that libcst's own provider tells, which takes five times as long."""

from __future__ import annotations

import pytest
from genuine import TEXTS
from hypothesis import given
from hypothesis import strategies as st
from libcst.metadata import MetadataWrapper, PositionProvider

from pypto_op_lint.lines import lines_of
from pypto_op_lint.parsing import parse_file
from pypto_op_lint.source import decode

LAYOUTS = r"""
%%


# a comment
%%
x = 1; y = (
    2,
    # inside
    [3
     , 4],
)
%%
# above

@a
# between
@b(
    1,
)
async def f(p, /, q: int = 0, *r, s=(
    1
), **t) -> None:
    '''Text

    of f.'''
%%

    # first
    await g(
        x
    )
%%
class C(
    A,
    metaclass=M,
):  # of the class

    x: int = \
        1

%%
    # last
# and outside
%%
for i in (
    1,
):
    pass
else:
    # why
    del i
%%
try:
    with a as b, \
            c:
        pass
except (
    A,
):
    raise
else:
    pass
finally:
    pass
%%
match x:
    # of the first
    case [1, *_] | {'k': v, **r} if (
        v
    ):
        pass
    case C(a=1):
        pass
%%
if a:
    pass
# of the branch
elif b: pass
else:

    pass
%%
z = f'''{
    x!r:>{w}
}''' 'b' \
    'c'
w = lambda a, *b: (
    a if b else {k: v for k in
 b if k}
)
"""
PIECES = LAYOUTS.split("%%\n")


def _agrees(text: str) -> None:
    module = parse_file(text)
    told = MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)
    assert lines_of(module) == {node: place.start.line for node, place in told.items()}


@pytest.mark.parametrize("name", list(TEXTS)[::7])
def test_of_real_files(name: str) -> None:
    _agrees(decode(TEXTS[name]).text)


@given(st.lists(st.sampled_from(PIECES), max_size=8), st.booleans())
def test_of_whatever_python_takes(pieces: list[str], ended: bool) -> None:
    text = "".join(pieces) if ended else "".join(pieces).rstrip("\n")
    try:
        compile(text, "", "exec", dont_inherit=True)
    except SyntaxError:
        text = PIECES[3] + "    " + PIECES[2].replace("\n", "\n    ")
    _agrees(text)

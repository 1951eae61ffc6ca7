"""OL04: a kernel sets a tile shape."""

import libcst as cst

from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import BODY, impl
from pypto_op_lint.facts.tiles import CONVOLUTION, CUBE, OPTION_WORDS, OPTIONS, VECTOR
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid

SETTERS = {VECTOR, CUBE, CONVOLUTION}
_UNTILED = BODY.split("\n", 1)[1]


class TileSet(Rule):
    """Neither a kernel nor a helper it calls sets a tile shape.

    What it does:
        Follows the calls from each kernel and looks for `pypto.set_vec_tile_shapes`, `pypto.set_cube_tile_shapes`,
        `pypto.set_conv_tile_shapes`, or `pypto.set_options` with one of them.

    Why:
        Every operation needs the tile of its unit when it is created. Without one, compilation ends with F21004,
        "tile shape not set".

    Example:
        @pypto.frontend.jit
        def exp_kernel(x, out):
            out[:] = pypto.exp(x)

    Use instead:
        @pypto.frontend.jit
        def exp_kernel(x, out):
            pypto.set_vec_tile_shapes(64, 128)
            out[:] = pypto.exp(x)

    Known limits:
        Whether the tile is set before the first operation, and for the right unit, is not judged.
    """

    id = "OL04"
    name = "tile-set"
    severity = Severity.S1
    artifacts = IMPLS
    needs = frozenset({"kernels", "foreign_calls", "calls"})
    MESSAGE = "the kernel sets no tile shape"
    FIX_HINT = (
        "call `pypto.set_vec_tile_shapes(...)` (and `pypto.set_cube_tile_shapes(...)` for matmul) before the first operation"
    )

    VALID = [
        Valid(impl()),
        Valid(impl("_tiles()\n" + _UNTILED, before="def _tiles():\n    pypto.set_vec_tile_shapes(64, 128)\n")),
        Valid(impl("set_tile(64, 128)\n" + _UNTILED, before="set_tile = pypto.set_vec_tile_shapes\n")),
        Valid(impl("pypto.set_conv_tile_shapes(_TILE)\n" + _UNTILED, before="_TILE = pypto.pypto_impl.TileL1Info()\n")),
        Valid(impl("pypto.set_options(vec_tile_shapes=[64, 128])\n" + _UNTILED)),
    ]
    INVALID = [
        Invalid(impl(_UNTILED)),
        Invalid(impl("# pypto.set_vec_tile_shapes(64, 128)\n" + _UNTILED)),
        Invalid(impl("if False:\n    pypto.set_vec_tile_shapes(64, 128)\n" + _UNTILED)),
        Invalid(impl(_UNTILED, before="def _never():\n    pypto.set_vec_tile_shapes(64, 128)\n")),
        Invalid(
            impl(
                "mine.set_vec_tile_shapes(64, 128)\n" + _UNTILED,
                before="from types import SimpleNamespace\n\nmine = SimpleNamespace(set_vec_tile_shapes=print)\n",
            )
        ),
        Invalid(
            impl(
                _UNTILED,
                wrapper="def demo_wrapper(x):\n    pypto.set_vec_tile_shapes(64, 128)\n"
                "    out = torch.empty_like(x)\n    demo_kernel(x, out)\n    return out\n",
            )
        ),
    ]

    def check_file(self) -> None:
        """Look for a setter behind each kernel."""
        setters = [
            site for site, node, names in self.facts.foreign_calls if names & SETTERS or (names & OPTIONS and _sets_tile(node))
        ]
        for kernel in self.facts.kernels:
            reached = {id(f) for f in self.facts.calls.reach([kernel])}
            if not any(site.function is not None and id(site.function) in reached for site in setters):
                self.report(kernel.site, f"the kernel `{kernel.name}` and the helpers it calls set no tile shape")


def _sets_tile(node: cst.Call) -> bool:
    return any(arg.keyword is not None and arg.keyword.value in OPTION_WORDS for arg in node.args)

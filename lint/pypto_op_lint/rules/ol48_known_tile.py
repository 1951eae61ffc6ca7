"""OL48: tile shapes are numbers that are known before the kernel is compiled."""

import libcst as cst

from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import BODY, impl, with_cube_tiles, with_vec_tiles
from pypto_op_lint.facts.values import Const, Member, Param, Result, Seq, Value
from pypto_op_lint.nodes import inside
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid

Values = tuple[Value, ...]


class KnownTile(Rule):
    """A tile shape is not a known positive integer, or a cube triple is malformed.

    What it does:
        Looks at every call of `pypto.set_vec_tile_shapes` and `pypto.set_cube_tile_shapes` in the kernel and in the helpers it
        calls. Each value must be known when the file is read: a literal, arithmetic on literals, a constant of the
        module, a class, a tuple or a dataclass, an argument that every caller fills with one. For the cube, m, k and n
        each need two values [L0, L1] with 0 < L0 <= L1 and L1 a multiple of L0; k may have a third, the L1 tile of B.

    Why:
        pypto fixes tiles when it compiles. A symbolic or run-time value ends in F21004 or REGISTER_COPY errors that name
        no line.

    Example:
        rows = x.shape[0]
        pypto.set_vec_tile_shapes(rows, 128)

    Use instead:
        ROWS = 64
        pypto.set_vec_tile_shapes(ROWS, 128)

    Known limits:
        A value that a call computes inside the argument is refused even if the call would give a constant.
    """

    id = "OL48"
    name = "known-tile"
    severity = Severity.S0
    artifacts = IMPLS
    needs = frozenset({"tile_settings", "kernels"})
    MESSAGE = "a tile shape is not known when the kernel is compiled"
    FIX_HINT = (
        "write integer literals or constants of the module, for the cube "
        "as [L0, L1] pairs such as [128, 128], where L1 is a multiple of L0"
    )

    VALID = [
        Valid(with_vec_tiles("64, 128")),
        Valid(with_cube_tiles("[128, 128], [64, 256, 128], [128, 128]")),
        Valid(with_vec_tiles("TILE, 64 * 2", before="TILE: int = 64\n")),
        Valid(with_vec_tiles("A, B", before="A, B = 1, 128\n")),
        Valid(with_vec_tiles("*TILE", before="TILE = (64, 128)\n")),
        Valid(with_vec_tiles("Tile.ROWS, Tile.COLS", before="class Tile:\n    ROWS = 64\n    COLS = 2 * ROWS\n")),
        Valid(
            with_vec_tiles(
                "CFG.rows, CFG.cols",
                before="from dataclasses import dataclass\n\n\n@dataclass(frozen=True)\nclass Cfg:\n    rows: int = 64\n"
                "    cols: int = 0\n\n\nCFG = Cfg(cols=128)\n",
            )
        ),
        Valid(with_vec_tiles('SIZES["rows"], SIZES["cols"]', before='SIZES = {"rows": 64, "cols": 128}\n')),
        Valid(with_cube_tiles("[64, 128], [64, 128], [128, 256]")),
        Valid(impl("pypto.set_options(vec_tile_shapes=[64, 128], cube_tile_shapes=[[64, 64]] * 3)\n" + BODY)),
        Valid(with_cube_tiles("**CUBE", before="CUBE = {'m': [64, 64], 'k': [64, 128], 'n': [64, 64]}\n")),
        Valid(with_cube_tiles("M, k=K, n=[128, 128]", before="M = K = (128, 128)\n")),
        Valid(with_cube_tiles("[128, 128], [128, 128], [128, 128], True")),
        Valid(
            impl(
                "_tiles(64)\n" + "\n".join(BODY.splitlines()[1:]) + "\n",
                before="def _tiles(rows):\n    pypto.set_vec_tile_shapes(rows, 128)\n",
            )
        ),
    ]
    INVALID = [
        Invalid(with_vec_tiles("x.shape[0], 128")),
        Invalid(impl("rows = x.shape[0]\n" + BODY.replace("(64, 128)", "(rows, 128)"))),
        Invalid(with_vec_tiles("size()", before="def size():\n    return 64\n")),
        Invalid(impl("pypto.set_options(vec_tile_shapes=[x.shape[0], 128])\n" + BODY)),
        Invalid(impl("pypto.set_options(cube_tile_shapes=[[128, 64], [64, 64], [64, 64]])\n" + BODY)),
        Invalid(with_vec_tiles("0, 128")),
        Invalid(with_vec_tiles("64.0, 128")),
        Invalid(with_vec_tiles("True, 128")),
        Invalid(with_vec_tiles("n, 128").replace("pypto.DT_FP32),\n):", "pypto.DT_FP32),\n    n: int,\n):")),
        Invalid(with_cube_tiles("[128], [128, 128], [128, 128]")),
        Invalid(with_cube_tiles("[128, 64], [128, 128], [128, 128]")),
        Invalid(with_cube_tiles("[128, 128], [96, 128], [128, 128]")),
        Invalid(with_cube_tiles("[128, 128], k=[x.shape[1], 128], n=[128, 128]")),
        Invalid(with_cube_tiles("**CUBE", before="CUBE = {'m': [64, 64], 'k': [128, 64], 'n': [64, 64]}\n")),
        Invalid(with_cube_tiles("*T", before="T = ([128, 128], [128, 128], [0, 128])\n")),
        Invalid(
            impl(
                "_body(x, out, x.shape[0])\n",
                before="def _body(x, out, rows):\n    pypto.set_vec_tile_shapes(rows, 128)\n    out[:] = pypto.exp(x)\n",
            )
        ),
        Invalid(impl("tile = pypto.set_vec_tile_shapes\ntile(x.shape[0], 128)\n" + BODY)),
    ]

    def check_file(self) -> None:
        """Check every tile setter of the graph."""
        for setting in self.facts.tile_settings:
            for place, value in setting.unread:
                self._refuse(place, self._why(value))
            if setting.vector == []:
                self.report(setting.site, "`set_vec_tile_shapes` is called without a shape")
            for place, values in setting.vector or ():
                self._number(place, values)
            for name, (place, values) in (setting.cube or {}).items():
                self._pair(name, place, values)

    def _pair(self, name: str, node: cst.CSTNode, values: Values) -> None:
        if any(isinstance(inner, cst.Call) for inner in inside(node)):
            self._refuse(node, "comes from a call")
            return
        for value in values:
            if not isinstance(value, Seq) or value.kind == "set":
                self._refuse(node, f"is no known list of two integers for {name}: {self._why(value)}")
                return
            if len(value.items) != 2 and (name, len(value.items)) != ("k", 3):
                self.report(node, f"the cube tile {name} has {len(value.items)} values instead of [L0, L1]")
                return
            elements = node.elements if isinstance(node, (cst.List, cst.Tuple)) else []
            inner = [e.value for e in elements] if len(elements) == len(value.items) else [node] * len(value.items)
            numbers = [self._number(place, item) for place, item in zip(inner, value.items, strict=True)]
            for outer in numbers[1:] if None not in numbers else ():
                self._ratio(name, node, numbers[0], outer)  # type: ignore[arg-type]

    def _ratio(self, name: str, node: cst.CSTNode, inner: int, outer: int) -> None:
        if inner > outer or outer % inner:
            self.report(node, f"the cube tile {name} is [{inner}, {outer}]: L1 must be a multiple of L0")

    def _number(self, node: cst.CSTNode, values: Values) -> int | None:
        """Judge one tile value; return it when it is one good number."""
        if any(isinstance(inner, cst.Call) for inner in inside(node)):
            self._refuse(node, "comes from a call")
            return None
        for value in values:
            if not isinstance(value, Const) or value.kind != "int":
                self._refuse(node, self._why(value))
                return None
            if value.value <= 0:
                self._refuse(node, f"is {value.value}, not a positive integer")
                return None
        numbers = [value.value for value in values if isinstance(value, Const)]
        return numbers[0] if len(numbers) == 1 else None

    def _refuse(self, node: cst.CSTNode, why: str) -> None:
        self.report(node, f"the tile shape `{self.code(node, 40)}` {why}")

    def _why(self, value: Value) -> str:
        base = value
        while isinstance(base, Member):
            base = base.base
        if isinstance(value, Const):
            return f"is {value.value!r}, not an integer"
        if isinstance(base, Param):
            kind = "kernel" if self.facts.is_kernel(base.function) else "function"
            return f"depends on the parameter `{base.parameter.name}` of the {kind} `{base.function.name}`"
        if isinstance(base, Result):
            return f"depends on the result of `{base.callee}`"
        return "is not known when the file is read"

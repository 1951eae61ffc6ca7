"""What a piece of Python would do to files: a walk over its tree that folds constants, runs nothing."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

from pypto_op_lint.guard.effects import Kind
from pypto_op_lint.guard.python_mentions import is_path, note_mentions
from pypto_op_lint.guard.state_calls import note_state_call
from pypto_op_lint.guard.words import ANY, STAR

if TYPE_CHECKING:
    from pypto_op_lint.guard.shell import Walker

_PLACEHOLDER = "__pypto_op_unknown__"
_WRITE_MODE = re.compile(r"[wax+]")
_WRITE_WORDS = re.compile(r"write|unlink|rename|remove|rmtree|truncate|open\s*\(|shutil|subprocess|system\s*\(")

_PATH_METHODS = {
    "write_text",
    "write_bytes",
    "unlink",
    "touch",
    "symlink_to",
    "hardlink_to",
    "rmdir",
    "chmod",
}
_READ_METHODS = {"read_text", "read_bytes"}
_OS_WRITES = {
    "remove": (0,),
    "unlink": (0,),
    "rename": (0, 1),
    "renames": (0, 1),
    "replace": (0, 1),
    "truncate": (0,),
    "symlink": (1,),
    "chmod": (0,),
    "removedirs": (0,),
    "rmdir": (0,),
}
_SHUTIL = {"copy": (1,), "copy2": (1,), "copyfile": (1,), "copytree": (1,), "move": (0, 1), "rmtree": (0,)}
_WRITER = re.compile(r"^save|save$|^dump$|export|^extract|tofile|^to_[a-z]+$|FileHandler$|^basicConfig$|memmap")
_PATH_NAME = re.compile(r"file|path|^f$|^out")
_SHELL_CALLS = {
    ("os", "system"),
    ("os", "popen"),
    ("subprocess", "getoutput"),
    ("subprocess", "getstatusoutput"),
}
_PROCESS_MODULES = {"subprocess", "pty", "os", "asyncio", "pexpect"}
_MODULES = {*_PROCESS_MODULES, "shutil", "io", "codecs", "builtins", "torch", "numpy", "np", "pathlib"}
_PROCESS_CALL = re.compile(r"(run|call|check_call|check_output|Popen|exec[lv]p?e?|(posix_)?spawn\w*|create_subprocess_\w+)\Z")
_PATH_TYPES = {"Path", "PosixPath", "PurePath"}
_LISTERS = {"glob", "rglob", "iglob"}


def analyse_python(walker: Walker, code: str, argv: list[str], *, mentions: bool = True) -> None:
    """Note what `code` would do.

    Args:
        walker: receives the effects; its folder is where the code runs.
        code: the program's text as a pattern.
        argv: what `sys.argv` will be, as patterns.
        mentions: whether a golden that is imported or named counts as read; not in the judge's own tests.
    """
    source = code.replace(ANY, _PLACEHOLDER).replace(STAR, "*")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        if _WRITE_WORDS.search(source):
            walker.add(Kind.OPAQUE, "its Python code cannot be parsed", "python")
        note_state_call(walker, [source])
        return
    _Analysis(walker, argv).visit(tree)
    note_mentions(walker, tree, argv, goldens=mentions)


class _Analysis(ast.NodeVisitor):
    """Visits statements in order and remembers what simple names hold."""

    def __init__(self, walker: Walker, argv: list[str]) -> None:
        self.walker = walker
        self.argv = argv
        self.names: dict[str, str] = {}
        self.lists: dict[str, ast.List | ast.Tuple] = {}
        self.modules: dict[str, str] = {}

    # -- what names hold -------------------------------------------------------------------------------------

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.modules[alias.asname or alias.name.partition(".")[0]] = alias.name
            self._imported(alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            self.modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
            self._imported(f"{node.module}.{alias.name}")

    def _imported(self, module: str) -> None:
        if module.partition(".")[0] == "tempfile":
            self.walker.add(Kind.TEMP, "tempfile", "python")

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self._bind(target, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self.visit(node.value)
            self._bind(node.target, node.value)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        self._bind(node.target, node.value)

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            known = self.names.get(target.id)
            new = self.text(value)
            self.names[target.id] = new if known in (None, new) else ANY
            if isinstance(value, ast.List | ast.Tuple):
                self.lists[target.id] = value
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for inner, item in zip(target.elts, value.elts, strict=False):
                self._bind(inner, item)

    def visit_For(self, node: ast.For) -> None:
        self.visit(node.iter)
        items = node.iter.elts if isinstance(node.iter, ast.List | ast.Tuple | ast.Set) else None
        for item in items[:32] if items else [None]:
            if item is None:
                self._bind_listed(node.target, node.iter)
            elif isinstance(node.target, ast.Name):
                self.names[node.target.id] = self.text(item)
            for statement in node.body + node.orelse:
                self.visit(statement)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self.visit(node.iter)
        self._bind_listed(node.target, node.iter)
        for condition in node.ifs:
            self.visit(condition)

    def _bind_listed(self, target: ast.expr, source: ast.expr) -> None:
        """Bind a loop's names: one to what is listed, the first of several to the folders of an `os.walk`."""
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        walks = len(names) > 1 and isinstance(source, ast.Call) and getattr(source.func, "attr", "") == "walk"
        for index, name in enumerate(names):
            if isinstance(name, ast.Name):
                found = self._listed(source) if len(names) == 1 else ANY
                if walks and index == 0 and isinstance(source, ast.Call):
                    root = self._positional(source, 0) if source.args else self._receiver(source)
                    found = (self.walker.cwd or "" if root in (".", "./") else root) + ANY
                self.names[name.id] = found

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        results = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        for part in [*node.generators, *results]:
            self.visit(part)

    visit_SetComp = visit_GeneratorExp = visit_DictComp = visit_ListComp

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            self.visit(item.context_expr)
            if isinstance(item.optional_vars, ast.Name):
                self.names[item.optional_vars.id] = ANY
        for statement in node.body:
            self.visit(statement)

    def _listed(self, node: ast.expr) -> str:
        """Return what iterating over `node` gives: the pattern of a glob, else anything."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            if node.func.attr == "scandir":
                return f"{self.text(node.args[0]).rstrip('/')}/{STAR}"
            if node.func.attr in _LISTERS:
                found = self.text(node.args[0]).replace("**/", ANY).replace("*", STAR).replace("?", STAR)
                base = self.text(node.func.value) if self._module(node.func.value) != "glob" else ""
                middle = ANY if node.func.attr == "rglob" else ""
                return f"{base.rstrip('/')}/{middle}{found}" if base else found
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "iterdir":
            return f"{self._receiver(node).rstrip('/')}/{STAR}"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "sorted":
            return self._listed(node.args[0]) if node.args else ANY
        return ANY

    # -- values as patterns ----------------------------------------------------------------------------------

    def text(self, node: ast.expr) -> str:
        """Return the text (or path) that an expression stands for, as a pattern."""
        if isinstance(node, ast.Constant):
            value = node.value.decode("utf-8", "replace") if isinstance(node.value, bytes) else node.value
            return str(value).replace(_PLACEHOLDER, ANY) if isinstance(value, str) else ANY
        if isinstance(node, ast.Name):
            return self.names.get(node.id, ANY)
        if isinstance(node, ast.JoinedStr):
            return "".join(self.text(p) if isinstance(p, ast.Constant) else self._formatted(p) for p in node.values)
        if isinstance(node, ast.BinOp):
            return self._operation(node)
        if isinstance(node, ast.Subscript):
            return self._argument(node)
        if isinstance(node, ast.Call):
            return self._call_value(node)
        if isinstance(node, ast.Attribute) and node.attr == "path" and isinstance(node.value, ast.Name):
            return self.names.get(node.value.id, ANY)
        return "python3" if self._module(node) == "sys.executable" else ANY

    def _formatted(self, node: ast.expr) -> str:
        return self.text(node.value) if isinstance(node, ast.FormattedValue) else ANY

    def _operation(self, node: ast.BinOp) -> str:
        left, right = self.text(node.left), self.text(node.right)
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Div):
            return right if right.startswith("/") else f"{left.rstrip('/')}/{right}"
        return re.sub(r"%[sdr]", ANY, left) if isinstance(node.op, ast.Mod) else ANY

    def _argument(self, node: ast.Subscript) -> str:
        is_argv = ast.unparse(node.value) in ("sys.argv", "argv")
        if is_argv and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int):
            index = node.slice.value
            if -len(self.argv) <= index < len(self.argv):
                return self.argv[index]
        return ANY

    def _call_value(self, node: ast.Call) -> str:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in _PATH_TYPES or name in ("str", "fspath", "abspath", "realpath", "expanduser"):
            return "/".join(self.text(a).rstrip("/") for a in node.args) if node.args else self._receiver(node)
        if name == "join" and isinstance(node.func, ast.Attribute) and len(node.args) > 1:
            return "/".join(self.text(a).rstrip("/") for a in node.args)
        if name in ("resolve", "absolute", "as_posix") and isinstance(node.func, ast.Attribute):
            return self.text(node.func.value)
        if name == "joinpath":
            return "/".join([self._receiver(node).rstrip("/"), *(self.text(a) for a in node.args)])
        if name in ("getcwd", "cwd"):
            return self.walker.cwd or ANY
        return ANY

    def _receiver(self, node: ast.Call) -> str:
        return self.text(node.func.value) if isinstance(node.func, ast.Attribute) else ANY

    # -- calls -----------------------------------------------------------------------------------------------

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        if ast.unparse(node.func).startswith("fileinput.") and any(k.arg == "inplace" for k in node.keywords):
            self._write(self._positional(node, 0))
        if isinstance(node.func, ast.Attribute):
            self._attribute_call(node, node.func)
        elif isinstance(node.func, ast.Name):
            full = self.modules.get(node.func.id, node.func.id)
            module, _, name = full.rpartition(".")
            self._function_call(node, module, name)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.generic_visit(node)
        if node.attr in ("NamedTemporaryFile", "mkdtemp", "mkstemp", "gettempdir", "TemporaryDirectory"):
            self.walker.add(Kind.TEMP, "tempfile", "python")

    def _module(self, node: ast.expr) -> str:
        name = ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else ""
        root, dot, rest = name.partition(".")
        return self.modules.get(root, root) + dot + rest

    def _attribute_call(self, node: ast.Call, function: ast.Attribute) -> None:
        module, name = self._module(function.value), function.attr
        if module in _MODULES:
            self._function_call(node, module, name)
            return
        receiver = self.text(function.value)
        if name in _PATH_METHODS:
            self._write(receiver)
            if name in ("symlink_to", "hardlink_to") and node.args:
                source = self.text(node.args[0])
                self.walker.add(Kind.LINK, source, "python")
                if not source.startswith("/"):  # a relative link counts from the folder that it lies in
                    self.walker.add(Kind.LINK, f"{receiver.rpartition('/')[0] or '.'}/{source}", "python")
        elif name in _READ_METHODS:
            self.walker.add(Kind.READ, receiver, "python")
        elif name == "open":
            self._open(node, receiver, mode_at=0)
        elif name in ("rename", "replace") and len(node.args) == 1 and not node.keywords:
            self._write(receiver)
            self._write(self.text(node.args[0]))
        else:
            self._by_name(node, name)

    def _function_call(self, node: ast.Call, module: str, name: str) -> None:
        if name in ("open", "FileIO") and module in ("", "io", "codecs", "builtins"):
            self._open(node, self._positional(node, 0), mode_at=1)
        elif module == "os" and name == "open":
            if re.search(r"O_(WRONLY|RDWR|CREAT|TRUNC|APPEND)", ast.unparse(node)) or len(node.args) < 2:
                self._write(self._positional(node, 0))
        elif module == "os" and name in _OS_WRITES:
            self._write_all(node, _OS_WRITES[name])
        elif module == "shutil" and name in _SHUTIL:
            self._write_all(node, _SHUTIL[name], tree=name in ("rmtree", "move", "copytree"))
            if name.startswith("copy"):
                self.walker.add(Kind.READ_TREE if name == "copytree" else Kind.READ, self._positional(node, 0), "python")
        elif module == "shutil" and name == "make_archive":
            for source in [*node.args[2:3], *(k.value for k in node.keywords if k.arg == "root_dir")]:
                self.walker.add(Kind.READ_TREE, self.text(source), "python")
        elif (module, name) in _SHELL_CALLS:
            self._shell(self._positional(node, 0))
        elif module in _PROCESS_MODULES and _PROCESS_CALL.match(name):
            self._process(node)
        elif name in ("exec", "eval") and module in ("", "builtins"):
            self._code(self._positional(node, 0))
        elif name in ("__import__", "import_module") and self._positional(node, 0) == "tempfile":
            self.walker.add(Kind.TEMP, "tempfile", "python")
        else:
            self._by_name(node, name)

    def _by_name(self, node: ast.Call, name: str) -> None:
        """Note the known paths given to a function whose name says that it writes; what it reads, nobody says so."""
        if _WRITER.search(name):
            given = [*node.args, *(k.value for k in node.keywords if k.arg and _PATH_NAME.search(k.arg))]
            for path in (self.text(item) for item in given):
                if is_path(path):
                    self._write(path)

    def _positional(self, node: ast.Call, index: int) -> str:
        return self.text(node.args[index]) if index < len(node.args) else ANY

    def _open(self, node: ast.Call, path: str, mode_at: int) -> None:
        mode: str | None = "r"
        given = [k.value for k in node.keywords if k.arg == "mode"] or node.args[mode_at : mode_at + 1]
        if given:
            mode = given[0].value if isinstance(given[0], ast.Constant) and isinstance(given[0].value, str) else None
        if mode is None or _WRITE_MODE.search(mode):
            self._write(path)
        else:
            self.walker.add(Kind.READ, path, "python")

    def _write(self, path: str, *, tree: bool = False) -> None:
        self.walker.add(Kind.WRITE_TREE if tree else Kind.WRITE, path, "python")

    def _write_all(self, node: ast.Call, positions: tuple[int, ...], *, tree: bool = False) -> None:
        for index in positions:
            self._write(self._positional(node, index), tree=tree)

    def _shell(self, command: str) -> None:
        if command == ANY:
            self.walker.add(Kind.OPAQUE, "it runs a shell command that is not known", "python")
        else:
            self.walker.run(command.replace(ANY, "$__cannot_be_known"))

    def _process(self, node: ast.Call) -> None:
        given = [self.lists.get(item.id, item) if isinstance(item, ast.Name) else item for item in node.args]
        vectors = [item for item in given if isinstance(item, ast.List | ast.Tuple)]
        texts = [self.text(item) for item in given]
        if vectors:
            arguments = [self.text(item) for item in vectors[0].elts]
            if arguments:
                self._quietly(lambda: self.walker.call(arguments))
        elif len(texts) > 1:  # the program, then its arguments
            self._quietly(lambda: self.walker.call(texts))
        elif texts:
            self._shell(texts[0])

    def _code(self, code: str) -> None:
        if code == ANY:
            self.walker.add(Kind.OPAQUE, "it executes text that is not known", "python")
        else:
            analyse_python(self.walker, code, self.argv)

    def _quietly(self, call: Callable[[], None]) -> None:
        stdin, self.walker.stdin = self.walker.stdin, None
        call()
        self.walker.stdin = stdin

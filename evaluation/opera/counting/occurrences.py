"""Occurrences of operators in the text of tests, without running or importing them.

Each function takes the text of one file and returns how often it names an operator, under the name that
`score.key_of` gives. Calls in loops, or with computed names, count as often as they are written, not as often as
they run.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from miscompile.base.errors import UsageError
from miscompile.migration.ranking.score import key_of

_CPP_ARGUMENT = re.compile(r'[\w>]\s*\(\s*"(\w+)"')
_MLIR_OPERATOR = re.compile(r'torch\.operator "onnx\.(\w+)"')
_PROTOTXT_OPERATOR = re.compile(r'\bop_type:\s*"(\w+)"')

_TORCH_TYPES = frozenset({
    "tensor", "module", "parameter", "size", "dtype", "device", "generator", "long", "int", "short", "double", "half",
    "bool", "float", "strided", "sparsecoo", "channelslast", "contiguousformat", "preserveformat", "bfloat16",
    "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "complex64", "complex128", "nograd",
    "inferencemode", "compile", "export", "manualseed", "testing", "nn", "functional",
    "special", "linalg", "fft", "ops",
})  # fmt: skip
"""Names in torch, without underscores, that are no operators."""

_TORCH_TOOLS = frozenset({
    "autograd", "backends", "cuda", "distributed", "export", "fx", "jit", "library", "onnx", "optim", "profiler",
    "testing", "utils", "version", "xpu",
})  # fmt: skip
"""Modules of torch without operators."""

_KERAS = re.compile(r"keras(\.src)?\.(layers|ops|activations|random)\..*")
"""Modules of Keras with operators."""

_PYTHON_METHODS = frozenset(name for kind in (dict, list, set, str, bytes) for name in dir(kind)) - {
    "split", "sort",
}  # fmt: skip
"""Methods of Python's own containers; tensors lack them, or tests hardly ever call them on tensors."""


@cache
def onnx_operators() -> frozenset[str]:
    """Return the names of all operators that onnx defines, of every domain and version."""
    from onnx import defs  # takes a while to import, and only counting needs it

    return frozenset(schema.name for schema in defs.get_all_schemas_with_history())


def onnx_in_python(text: str, path: str = "") -> Counter[str]:
    """Count strings that are the name of an ONNX operator, anywhere in a Python test except in comparisons."""
    tree = _parsed(text, path)
    compared = {id(leaf) for node in ast.walk(tree) if isinstance(node, ast.Compare) for leaf in ast.walk(node)}
    names = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in compared)
    return Counter(name for name in names if isinstance(name, str) and name in onnx_operators())


def onnx_in_cpp(text: str, path: str = "") -> Counter[str]:
    """Count ONNX operators that are the first argument of a call or constructor: `OpTester test("Add", 7)`."""
    del path
    return Counter(name for name in _CPP_ARGUMENT.findall(text) if name in onnx_operators())


def onnx_in_mlir(text: str, path: str = "") -> Counter[str]:
    """Count the ONNX operators of a program in torch-mlir's dialect."""
    del path
    return Counter(_MLIR_OPERATOR.findall(text))


def onnx_in_prototxt(text: str, path: str = "") -> Counter[str]:
    """Count the nodes of an ONNX model in protobuf's text format."""
    del path
    return Counter(_PROTOTXT_OPERATOR.findall(text))


def torch_in_python(text: str, path: str = "") -> Counter[str]:
    """Count the names of torch in a Python test, and its method calls on objects that are no modules."""
    tree = _parsed(text, path)
    modules = _imports(tree)
    found: Counter[str] = Counter()
    for path in _paths(tree, modules):
        parts = path.split(".")
        if (
            parts[0] == "torch"
            and parts[1] not in _TORCH_TOOLS
            and not any(part.startswith("_") for part in parts[:-1])
        ):
            found[_torch_key(path)] += 1
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and _on_a_value(call.func, modules):
            found[key_of("torch", call.func.attr)] += 1
    return Counter({name: number for name, number in found.items() if name and name not in _TORCH_TYPES})


def torch_in_database(text: str, path: str = "") -> Counter[str]:
    """Count entries of a database of operators: calls of `...OpInfo` whose first argument is the operator's name."""
    calls = (node for node in ast.walk(_parsed(text, path)) if isinstance(node, ast.Call) and node.args)
    named = (call.args[0] for call in calls if ast.unparse(call.func).endswith("OpInfo"))
    names = (name.value for name in named if isinstance(name, ast.Constant) and isinstance(name.value, str))
    return Counter(_torch_key(f"torch.{name}") for name in names)


def keras_in_python(text: str, path: str = "", excluded: Sequence[str] = ()) -> Counter[str]:
    """Count the names of keras in a Python test.

    Tests whose pytest name contains one of `excluded` are left out, as are those marked to need training.
    """
    tree = _parsed(text, path)
    modules = _imports(tree)
    for holder in ast.walk(tree):
        if isinstance(holder, ast.ClassDef | ast.Module):
            holder.body = [item for item in holder.body if not _left_out(item, holder, path, excluded)]
    return Counter(key_of("keras", path) for path in _paths(tree, modules) if _KERAS.fullmatch(path))


def _left_out(item: ast.stmt, holder: ast.ClassDef | ast.Module, path: str, excluded: Sequence[str]) -> bool:
    if not isinstance(item, ast.FunctionDef | ast.ClassDef):
        return False
    owner = f"{holder.name}::" if isinstance(holder, ast.ClassDef) else ""
    name = f"{path}::{owner}{item.name}"
    marks = " ".join(ast.unparse(mark) for mark in item.decorator_list)
    return "requires_trainable_backend" in marks or any(one in name for one in excluded)


def _torch_key(path: str) -> str:
    """Return the key of a path in torch: for `torch.ops.aten.add.Tensor`, that of `add`."""
    for space in ("ops.aten.", "ops.prims."):
        _, found, rest = path.partition(space)
        if found:
            return key_of("torch", rest.partition(".")[0])
    return key_of("torch", path)


def _on_a_value(function: ast.Attribute, modules: Mapping[str, str]) -> bool:
    """Tell whether a call is a method's, of something that may be a tensor."""
    if function.attr in _PYTHON_METHODS or function.attr.startswith(("_", "assert")):
        return False
    root: ast.expr = function
    while isinstance(root, ast.Attribute):
        root = root.value
    return not isinstance(root, ast.Name) or (root.id not in modules and root.id not in ("self", "cls", "super"))


def _paths(tree: ast.AST, modules: Mapping[str, str]) -> Iterator[str]:
    """Yield the whole path of every longest dotted name that begins with an imported one."""
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if id(node) in inner or not isinstance(node, ast.Attribute | ast.Name):
            continue
        parts: list[str] = []
        part: ast.expr = node
        while isinstance(part, ast.Attribute):
            parts.append(part.attr)
            part = part.value
        if isinstance(part, ast.Name) and part.id in modules:
            path = ".".join([modules[part.id], *reversed(parts)])
            if "." in path:
                yield path


def _imports(tree: ast.AST) -> dict[str, str]:
    """Return what each imported name stands for, by its whole path."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                found[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return found


def _parsed(text: str, path: str) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError as error:
        raise UsageError(f"{path or 'a test'} is not valid Python for this interpreter: {error}") from None

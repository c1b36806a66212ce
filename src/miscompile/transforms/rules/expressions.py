"""The small expression language of rule files: arithmetic on shapes, axes and parameters.

An expression is parsed by Python's own parser, every node of it is checked against a short list, and it is compiled
once to a function of the variables that it names. A rule file can access nothing outside the list below: no attributes
except a type's own, no names except variables and the functions here.
"""

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from miscompile.base.dtypes import DTYPES
from miscompile.base.errors import SpecError
from miscompile.transforms.rules.kinds import broadcast

Bindings: TypeAlias = Mapping[str, Any]
"""Tensor variables by name, each with its Type, and parameter variables with their values."""


def swap(count: int, first: int, second: int) -> tuple[int, ...]:
    """Return the permutation of `count` axes that exchanges two of them."""
    places = list(range(count))
    places[first], places[second] = places[second], places[first]
    return tuple(places)


def inverse(perm: Sequence[int]) -> tuple[int, ...]:
    """Return the permutation that undoes `perm`."""
    found = [0] * len(perm)
    for place, axis in enumerate(perm):
        found[axis] = place
    return tuple(found)


def take(values: Sequence[Any], places: Sequence[int]) -> tuple[Any, ...]:
    """Return the values at `places`: a permuted shape, or the composition of two permutations."""
    return tuple([values[place] for place in places])


def put(values: Sequence[Any], place: int, value: object) -> tuple[Any, ...]:
    """Return `values` with another value at `place`."""
    return (*values[:place], value, *values[place + 1 :])


def without(values: Sequence[Any], *places: int) -> tuple[Any, ...]:
    """Return `values` but for those at `places`."""
    return tuple([value for place, value in enumerate(values) if place not in places])


def insert(values: Sequence[Any], place: int, value: object) -> tuple[Any, ...]:
    """Return `values` with one more value, before the one at `place`."""
    return (*values[:place], value, *values[place:])


def unsqueezed(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """Return `shape` with axes of size 1 at the places `axes` of the result."""
    sizes = iter(shape)
    return tuple([1 if place in axes else next(sizes) for place in range(len(shape) + len(axes))])


def single(indices: object) -> bool:
    """Tell whether the indices of a Gather are one number, so that it drops its axis."""
    return isinstance(indices, int)


def width(dtype: str) -> int:
    """Return the bits of an element."""
    return DTYPES[dtype].bits


def digits(dtype: str) -> int:
    """Return the number n so that `dtype` represents every integer up to 2**n."""
    return DTYPES[dtype].digits


def kind(dtype: str) -> str:
    """Return `float`, `int`, `uint` or `bool`."""
    return DTYPES[dtype].kind


def holds(narrow: str, wide: str) -> bool:
    """Tell whether `wide` holds every value of `narrow`: then a cast there and back changes nothing."""
    small, large = DTYPES[narrow], DTYPES[wide]
    if small.kind == "bool" or narrow == wide:
        return True
    if small.kind == "float":
        return (narrow, wide) in _WIDER_FLOATS
    if large.kind == "float":
        return small.digits <= large.digits
    if small.kind == "int":
        return large.kind == "int" and small.bits <= large.bits
    return large.digits >= small.digits and large.kind in ("int", "uint")


_WIDER_FLOATS = {
    ("float16", "float32"), ("bfloat16", "float32"), ("float16", "float64"), ("bfloat16", "float64"),
    ("float32", "float64"),
}  # fmt: skip

FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "abs": abs, "all": all, "any": any, "enumerate": enumerate, "len": len, "max": max, "min": min, "prod": math.prod,
    "range": range, "reversed": reversed, "set": set, "sorted": sorted, "sum": sum, "tuple": tuple, "zip": zip,
    "broadcast": broadcast, "swap": swap, "inverse": inverse, "take": take, "put": put, "without": without,
    "insert": insert, "unsqueezed": unsqueezed, "single": single, "width": width, "digits": digits, "kind": kind,
    "holds": holds, "sqrt": math.sqrt, "float": float, "int": int,
}  # fmt: skip
"""The functions that an expression may call."""

_ATTRIBUTES = {"dtype", "shape", "rank", "size"}
_NODES = (
    ast.Expression, ast.Constant, ast.Name, ast.Load, ast.Store, ast.Tuple, ast.List, ast.Set, ast.Subscript,
    ast.Slice, ast.Attribute, ast.Call, ast.Starred, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub,
    ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Div, ast.Mod, ast.Pow, ast.Compare, ast.Eq, ast.NotEq,
    ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn, ast.Is, ast.IsNot, ast.IfExp, ast.GeneratorExp,
    ast.ListComp, ast.comprehension,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ParameterExpression:
    """An expression by its text, compiled on first use; equal texts share the compiled function.

    `variable` is its name when it is a bare variable, which a left side binds.
    """

    text: str
    variable: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The variables that it needs. Raises SpecError for text outside the language."""
        return (self.variable,) if self.variable else _meaning(self.text)[0]

    @property
    def compiled(self) -> tuple[tuple[str, ...], Callable[..., Any]]:
        """The variables that it needs, and the function that computes it from them. Raises as `names`."""
        return _meaning(self.text)

    def value(self, environment: Bindings) -> Any:  # noqa: ANN401 - whatever the rule's author computes
        """Return the expression's value. Raises KeyError when a variable that it needs is not bound."""
        if self.variable:
            return environment[self.variable]
        names, function = _meaning(self.text)
        return function(*[environment[name] for name in names])


def expression(text: str) -> ParameterExpression:
    """Return the expression of `text`, which is parsed on first use."""
    text = text.strip()
    return ParameterExpression(text, text if text.isidentifier() else None)


class _Sizes(ast.NodeTransformer):
    """Replaces `x.rank` and `x.size`, which a `TermType` lacks, by expressions that compute them."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        if node.attr not in ("rank", "size"):
            return node
        shape = ast.Attribute(node.value, "shape", ast.Load())
        return ast.Call(ast.Name("len" if node.attr == "rank" else "prod", ast.Load()), [shape], [])


@cache
def _meaning(text: str) -> tuple[tuple[str, ...], Callable[..., Any]]:
    """Return the free variables of an expression, and the function that computes it from them. Raises SpecError."""
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise SpecError(f"'{text}' is no expression: {error.msg}") from None
    names = _variables(tree, text)
    arguments = ast.arguments(
        posonlyargs=[], args=[ast.arg(name) for name in names], kwonlyargs=[], kw_defaults=[], defaults=[]
    )
    whole = ast.fix_missing_locations(ast.Expression(ast.Lambda(arguments, _Sizes().visit(tree))))
    return names, eval(compile(whole, f"<{text}>", "eval"), {"__builtins__": {}, **FUNCTIONS})


def _variables(tree: ast.expr, text: str) -> tuple[str, ...]:
    """Return the free variables of `tree`. Raises SpecError for syntax outside the language."""
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    used: dict[str, None] = {}
    for node in ast.walk(tree):
        if not isinstance(node, _NODES):
            raise SpecError(f"'{text}': {type(node).__name__} is not part of the language")
        if isinstance(node, ast.Attribute) and node.attr not in _ATTRIBUTES:
            raise SpecError(f"'{text}': there is no .{node.attr}; there are: {', '.join(sorted(_ATTRIBUTES))}")
        if isinstance(node, ast.Call) and not _is_known_call(node):
            raise SpecError(f"'{text}': '{ast.unparse(node)}' calls something that is not part of the language")
        if isinstance(node, ast.Name) and id(node) not in called and node.id not in bound:
            if node.id in FUNCTIONS:
                raise SpecError(f"'{text}': {node.id} is a function and cannot be a variable")
            used[node.id] = None
    return tuple(used)


def _is_known_call(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS and not node.keywords

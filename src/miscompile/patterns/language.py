"""The motif language: small templates in a few readable lines.

    [gelu_erf]                          a motif; [noop: mul_one] is one that changes nothing
    x = value(..., N)                   an existing or new value: any leading dimensions, then one called N
    w = weight(N, M, lo=0.1, hi=2)      a new constant; sizes are names bound by values, or numbers
    d = Div(x, 1.4142135)               a call; numbers become scalar constants of the motif's dtype
    y = ReduceMean(d, axes=(-1,))       keywords are attributes (axes become an input where the opset says so)
    z = Reshape(y, ints(0, -1))         int64 constants; `_` leaves an optional input out, `index(0)` has no rank
    o = Add(z, full(1, N))              a constant filled with one number
    dtypes("float32", "float16")        dtypes to choose from (default: all floats); `T` names the chosen one

Lines are read with Python's own parser and interpreted, never evaluated.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from miscompile.base.dtypes import DTYPES, FLOATS
from miscompile.base.errors import SpecError

Size: TypeAlias = int | str


@dataclass(frozen=True, slots=True)
class Value:
    """An operand from outside: `leading` allows any number of dimensions before `sizes`; None is any shape."""

    name: str
    sizes: tuple[Size, ...] | None
    leading: bool


@dataclass(frozen=True, slots=True)
class Weight:
    """A new constant with elements in [lo, hi] (None: the usual range)."""

    name: str
    sizes: tuple[Size, ...]
    within: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Ref:
    """A name bound earlier."""

    name: str


@dataclass(frozen=True, slots=True)
class Number:
    """A scalar constant of the motif's dtype."""

    value: float


@dataclass(frozen=True, slots=True)
class Ints:
    """A constant vector of int64, or with `scalar` a single number without rank; names are bound sizes."""

    values: tuple[Size, ...]
    scalar: bool = False


@dataclass(frozen=True, slots=True)
class Full:
    """A constant of the motif's dtype filled with one number."""

    value: float
    sizes: tuple[Size, ...]


Argument: TypeAlias = Ref | Number | Ints | Full | None
Setting: TypeAlias = int | float | str | tuple[Size, ...] | tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Apply:
    """A call. Attribute `to` holds a dtype name, `T` for the motif's."""

    names: tuple[str, ...]
    op: str
    arguments: tuple[Argument, ...]
    attributes: tuple[tuple[str, Setting], ...]


Statement: TypeAlias = Value | Weight | Apply


@dataclass(frozen=True, slots=True)
class Motif:
    """A template. `noop`: the last result equals the first value in all elements."""

    name: str
    noop: bool
    dtypes: tuple[str, ...]
    statements: tuple[Statement, ...]

    @property
    def operators(self) -> tuple[str, ...]:
        """Operators in order."""
        return tuple(statement.op for statement in self.statements if isinstance(statement, Apply))


_HEADER = re.compile(r"\[(noop:\s*)?([\w-]+)\]\s*$")


def parse_motifs(text: str, where: str) -> Iterator[Motif]:
    """Yield the motifs of `text`; `where` names the source in errors. Raises SpecError at the first bad line."""
    header: re.Match[str] | None = None
    lines: list[tuple[int, str]] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.partition("#")[0].strip()
        if not line:
            continue
        found = _HEADER.match(line)
        if found is None:
            lines.append((number, line))
            continue
        if header is not None:
            yield _motif(header, lines, where)
        header, lines = found, []
    if header is not None:
        yield _motif(header, lines, where)


def _motif(header: re.Match[str], lines: list[tuple[int, str]], where: str) -> Motif:
    dtypes: tuple[str, ...] = FLOATS
    statements: list[Statement] = []
    bound: set[str] = set()
    for number, line in lines:
        try:
            statement = ast.parse(line).body[0]
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                dtypes = tuple(_text(argument) for argument in statement.value.args)
                _known(dtypes)
                continue
            parsed = _statement(statement)
            _check_bound(parsed, bound)
            statements.append(parsed)
        except (SyntaxError, ValueError) as error:
            raise SpecError(f"{where}:{number}: motif {header[2]}: {error}") from None
    return Motif(header[2], header[1] is not None, dtypes, tuple(statements))


def _known(dtypes: tuple[str, ...]) -> None:
    unknown = [name for name in dtypes if name not in DTYPES]
    if unknown:
        raise ValueError(f"there is no dtype '{unknown[0]}'")


def _check_bound(statement: Statement, bound: set[str]) -> None:
    if isinstance(statement, Apply):
        for argument in statement.arguments:
            if isinstance(argument, Ref) and argument.name not in bound:
                raise ValueError(f"'{argument.name}' is used before it is bound")
        bound.update(statement.names)
    else:
        bound.add(statement.name)


def _statement(statement: ast.stmt) -> Statement:
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
        raise ValueError("a line must be name = call(...)")
    names = _targets(statement.targets[0])
    call = statement.value
    if not isinstance(call.func, ast.Name):
        raise ValueError("an operator must be a plain name")
    if call.func.id == "value":
        return _value(names[0], call)
    if call.func.id == "weight":
        return _weight(names[0], call)
    settings = tuple((keyword.arg or "", _setting(keyword.value)) for keyword in call.keywords)
    return Apply(names, call.func.id, tuple(map(_argument, call.args)), settings)


def _targets(target: ast.expr) -> tuple[str, ...]:
    elements = target.elts if isinstance(target, ast.Tuple) else [target]
    return tuple(_name(element) for element in elements)


def _name(node: ast.expr) -> str:
    if not isinstance(node, ast.Name):
        raise ValueError("a plain name is expected")
    return node.id


def _value(name: str, call: ast.Call) -> Value:
    if not call.args:
        return Value(name, None, leading=True)
    first = call.args[0]
    leading = isinstance(first, ast.Constant) and first.value is Ellipsis
    return Value(name, tuple(map(_size, call.args[leading:])), leading)


def _weight(name: str, call: ast.Call) -> Weight:
    options = {keyword.arg: _number(keyword.value) for keyword in call.keywords}
    within = (options["lo"], options["hi"]) if options else None
    return Weight(name, tuple(map(_size, call.args)), within)


def _argument(node: ast.expr) -> Argument:
    if isinstance(node, ast.Name):
        return None if node.id == "_" else Ref(node.id)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id == "ints":
            return Ints(tuple(map(_size, node.args)))
        if node.func.id == "index":
            return Ints((_size(node.args[0]),), scalar=True)
        if node.func.id == "full":
            return Full(_number(node.args[0]), tuple(map(_size, node.args[1:])))
        raise ValueError(f"'{node.func.id}' cannot stand as an argument; write it on its own line")
    return Number(_number(node))


def _size(node: ast.expr) -> Size:
    return node.id if isinstance(node, ast.Name) else int(_number(node))


def _number(node: ast.expr) -> float:
    value = ast.literal_eval(node)
    if not isinstance(value, int | float):
        raise ValueError("a number is expected")
    return value


def _text(node: ast.expr) -> str:
    value = ast.literal_eval(node)
    if not isinstance(value, str):
        raise ValueError("a quoted word is expected")
    return value


def _setting(node: ast.expr) -> Setting:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Tuple):
        return tuple(_size(element) for element in node.elts)
    value = ast.literal_eval(node)
    if not isinstance(value, int | float | str):
        raise ValueError("an attribute must be a number, a word or a tuple")
    return value

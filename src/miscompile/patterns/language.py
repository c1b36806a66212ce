"""The motif language: small templates in a few readable lines.

    [gelu_erf]                          a motif; [noop: mul_one] is one that changes nothing
    x = value(..., N)                   an existing or new value: any leading dimensions, then one called N
    i = value(N, dtype="int64")         a value of that dtype instead of the motif's; `lo=0, hi=5` bounds its elements
    w = weight(N, M, lo=0.1, hi=2)      a new constant; sizes are names bound by values, or numbers; `dtype="int8"`
    c = numbers((1.5, 2), sizes=(2, 1)) a constant with exactly these elements; sizes (default: a vector), and dtype
    d = Div(x, 1.4142135)               a call; numbers become scalar constants of the motif's dtype
    y = ReduceMean(d, axes=(-1,))       keywords are attributes (axes become an input where the opset says so)
    z = Reshape(y, ints(0, -1))         int64 constants; `_` leaves an optional input out, `index(0)` has no rank
    o = Add(z, full(1, N))              a constant filled with one number
    dtypes("float32", "float16")        dtypes to choose from (default: all floats); `T` names the chosen one

`value()` is a value of any shape, `value(rank=0)` a scalar one. `inf` and `nan` are numbers; a name among whole numbers
is a size. Attributes are numbers, quoted words, tuples of either, and `numbers(...)` for a tensor; `to` and the like
hold a dtype's name. The name `_` is an unused result.

Lines are read with Python's own parser and interpreted, never evaluated.
"""

import ast
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from miscompile.base.dtypes import DTYPES, FLOATS, PLAIN
from miscompile.base.errors import SpecError
from miscompile.patterns.literals import is_name, keywords_of, name_in, number_in, parsed, size_in, sizes_in, text_in

Size: TypeAlias = int | str

TYPING = frozenset({"to", "dtype", "output_dtype"})
"""Attributes that hold the number of a dtype in ONNX, and its name (or `T`) here."""


class Word(str):
    """A quoted word, which is never the name of a size. It is text, so that readers of words need no case for it."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class MotifValue:
    """An operand from outside: `leading` allows any number of dimensions before `sizes`; None is any shape.

    `dtype` is None for the motif's. Elements of a new one lie in [lo, hi] of `within` (None: the usual range).
    """

    name: str
    sizes: tuple[Size, ...] | None
    leading: bool
    dtype: str | None = None
    within: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Weight:
    """A new constant with elements in [lo, hi] (None: the usual range). `dtype` is None for the motif's."""

    name: str
    sizes: tuple[Size, ...]
    within: tuple[float, float] | None
    dtype: str | None = None


@dataclass(frozen=True, slots=True)
class Elements:
    """A tensor by its elements in row-major order; names are bound sizes. `sizes` None: a vector, `dtype` None: T."""

    values: tuple[Size | float, ...]
    sizes: tuple[int, ...] | None = None
    dtype: str | None = None


@dataclass(frozen=True, slots=True)
class Numbers:
    """A new constant with exactly these elements, where a weight's are drawn."""

    name: str
    elements: Elements


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
AttributeSetting: TypeAlias = int | float | str | tuple[Size | float, ...] | Elements


@dataclass(frozen=True, slots=True)
class MotifCall:
    """A call. Attributes in `TYPING` hold a dtype name, `T` for the motif's; words are `Word`, other names sizes."""

    names: tuple[str, ...]
    op: str
    arguments: tuple[Argument, ...]
    attributes: tuple[tuple[str, AttributeSetting], ...]


Statement: TypeAlias = MotifValue | Weight | Numbers | MotifCall
Vet: TypeAlias = Callable[[Statement], None]


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
        return tuple(statement.op for statement in self.statements if isinstance(statement, MotifCall))

    @property
    def holes(self) -> tuple[MotifValue, ...]:
        """The values from outside, in order, which a fragment must be given."""
        return tuple(statement for statement in self.statements if isinstance(statement, MotifValue))


_HEADER = re.compile(r"\[(noop:\s*)?([\w-]+)\]\s*$")


def parse_motifs(text: str, where: str, vet: Vet | None = None) -> Iterator[Motif]:
    """Yield the motifs of `text`; `where` names the source in errors. Raises SpecError at the first bad line.

    `vet` raises ValueError for a statement that parses but is invalid.
    """
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
            yield _motif(header, lines, where, vet)
        header, lines = found, []
    if header is not None:
        yield _motif(header, lines, where, vet)


def _motif(header: re.Match[str], lines: list[tuple[int, str]], where: str, vet: Vet | None) -> Motif:
    dtypes: tuple[str, ...] = FLOATS
    statements: list[Statement] = []
    bound: set[str] = set()
    for number, line in lines:
        try:
            read = parsed(line)
            if isinstance(read, ast.Expr):
                dtypes = _dtypes(read.value)
                continue
            statement = _statement(read)
            _check_bound(statement, bound)
            if vet is not None:
                vet(statement)
            statements.append(statement)
        except (SyntaxError, ValueError) as error:
            raise SpecError(f"{where}:{number}: motif {header[2]}: {error}") from None
    return Motif(header[2], header[1] is not None, dtypes, tuple(statements))


def _dtypes(call: ast.expr) -> tuple[str, ...]:
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "dtypes"):
        raise ValueError("a line must be name = call(...), or dtypes(...)")
    keywords_of(call, ())
    if not call.args:
        raise ValueError("there must be a dtype to choose")
    dtypes = tuple(map(text_in, call.args))
    _known(dtypes)
    return dtypes


def _known(dtypes: tuple[str, ...]) -> None:
    unknown = [name for name in dtypes if name not in DTYPES]
    if unknown:
        raise ValueError(f"there is no dtype '{unknown[0]}'")


def _check_bound(statement: Statement, bound: set[str]) -> None:
    if isinstance(statement, MotifCall):
        for argument in statement.arguments:
            if isinstance(argument, Ref) and argument.name not in bound:
                raise ValueError(f"'{argument.name}' is used before it is bound")
        bound.update(statement.names)
    else:
        bound.add(statement.name)


def _statement(statement: ast.stmt) -> Statement:
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
        raise ValueError("a line must be name = call(...)")
    if len(statement.targets) != 1:
        raise ValueError("a line has one equals sign")
    names = _targets(statement.targets[0])
    call = statement.value
    if not isinstance(call.func, ast.Name):
        raise ValueError("an operator must be a plain name")
    makers: dict[str, Callable[[str, ast.Call], Statement]] = {"value": _value, "weight": _weight, "numbers": _numbers}
    if call.func.id in makers:
        if len(names) != 1:
            raise ValueError(f"{call.func.id}(...) has one name")
        return makers[call.func.id](names[0], call)
    settings = tuple((keyword.arg or "", _setting(keyword.arg or "", keyword.value)) for keyword in call.keywords)
    return MotifCall(names, call.func.id, tuple(map(_argument, call.args)), settings)


def _targets(target: ast.expr) -> tuple[str, ...]:
    elements = target.elts if isinstance(target, ast.Tuple) else [target]
    if not elements:
        raise ValueError("a plain name is expected")
    return tuple(name_in(element) for element in elements)


def _value(name: str, call: ast.Call) -> MotifValue:
    given = keywords_of(call, ("dtype", "lo", "hi", "rank"))
    dtype, within = _dtype(given), _within(given)
    if "rank" in given:
        if number_in(given["rank"]) != 0 or call.args:
            raise ValueError("rank=0 stands alone, and other ranks are told by the sizes")
        return MotifValue(name, (), leading=False, dtype=dtype, within=within)
    if not call.args:
        return MotifValue(name, None, leading=True, dtype=dtype, within=within)
    first = call.args[0]
    leading = isinstance(first, ast.Constant) and first.value is Ellipsis
    return MotifValue(name, tuple(map(size_in, call.args[leading:])), leading, dtype, within)


def _weight(name: str, call: ast.Call) -> Weight:
    given = keywords_of(call, ("dtype", "lo", "hi"))
    return Weight(name, tuple(map(size_in, call.args)), _within(given), _dtype(given))


def _numbers(name: str, call: ast.Call) -> Numbers:
    return Numbers(name, _elements(call))


def _elements(call: ast.Call) -> Elements:
    given = keywords_of(call, ("dtype", "sizes"))
    if len(call.args) != 1 or not isinstance(call.args[0], ast.Tuple):
        raise ValueError("numbers are given as one tuple: numbers((1, 2))")
    values = tuple(map(_item, call.args[0].elts))
    if any(isinstance(value, Word) for value in values):
        raise ValueError("a number is expected")
    sizes = sizes_in(given["sizes"]) if "sizes" in given else None
    if sizes is not None and math.prod(sizes) != len(values):
        raise ValueError(f"a constant of sizes {sizes} has {math.prod(sizes)} elements, but {len(values)} are given")
    return Elements(values, sizes, _dtype(given))


def _dtype(given: Mapping[str, ast.expr]) -> str | None:
    if "dtype" not in given:
        return None
    dtype = text_in(given["dtype"])
    if dtype not in PLAIN:
        raise ValueError(f"there is no dtype '{dtype}' for values")
    return dtype


def _within(given: Mapping[str, ast.expr]) -> tuple[float, float] | None:
    if "lo" not in given and "hi" not in given:
        return None
    if "lo" not in given or "hi" not in given:
        raise ValueError("lo and hi come together")
    lo, hi = number_in(given["lo"]), number_in(given["hi"])
    if not lo <= hi:
        raise ValueError(f"no number lies between lo={lo} and hi={hi}")
    return lo, hi


def _argument(node: ast.expr) -> Argument:
    if isinstance(node, ast.Name) and is_name(node):
        return None if node.id == "_" else Ref(node.id)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _written(node.func.id, node)
    return Number(number_in(node))


def _written(word: str, call: ast.Call) -> Ints | Full:
    """Return a constant that is written in the call that reads it."""
    if word not in ("ints", "index", "full"):
        raise ValueError(f"'{word}' cannot stand as an argument; write it on its own line")
    keywords_of(call, ())
    if word == "ints":
        return Ints(tuple(map(size_in, call.args)))
    if word == "index" and len(call.args) == 1:
        return Ints((size_in(call.args[0]),), scalar=True)
    if word == "full" and call.args:
        return Full(number_in(call.args[0]), tuple(map(size_in, call.args[1:])))
    raise ValueError("index(...) has one number" if word == "index" else "full(...) has a number, and then sizes")


def _item(node: ast.expr) -> Size | float:
    """Return an element of a tuple: a quoted word, a number, or the name of a size."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return Word(node.value)
    if isinstance(node, ast.Name) and is_name(node):
        return node.id
    return number_in(node)


def _setting(name: str, node: ast.expr) -> AttributeSetting:
    if isinstance(node, ast.Tuple | ast.List):
        return _several(tuple(map(_item, node.elts)))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "numbers":
        return _elements(node)
    if not isinstance(node, ast.Name | ast.Constant | ast.UnaryOp):
        raise ValueError("an attribute must be a number, a word, a tuple or numbers(...)")
    value = _item(node)
    if name not in TYPING or not isinstance(value, str):
        return value
    if value != "T":
        _known((value,))
    return str(value)


def _several(items: tuple[Size | float, ...]) -> tuple[Size | float, ...]:
    """Return the elements of a tuple, whose numbers are all whole ones or all floats."""
    if any(isinstance(item, Word) for item in items) and not all(isinstance(item, Word) for item in items):
        raise ValueError("an attribute holds words or numbers, not both")
    if any(isinstance(item, float) for item in items):
        try:
            return tuple(item if isinstance(item, str) else float(item) for item in items)
        except OverflowError:
            raise ValueError("a number among fractions is too large") from None
    return items

"""Parameters of operator instances as Python source: values in the words of a library."""

import keyword
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from miscompile.base.dtypes import DTYPES
from miscompile.codegen.layout import Expression, Group, Keyed, array, call, lay_out
from miscompile.codegen.literals import literal, native
from miscompile.core.tensor import Tensor
from miscompile.instances.values import Drawn, Held, Made, Name, SliceValue, Slot, Value


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a library spells what Python does not have.

    `tensor` and `drawn` return expressions for tensors, `name` for what has a name, `slot` for an input of the program.
    """

    tensor: Callable[[Tensor], Expression]
    drawn: Callable[[Drawn], Expression]
    name: Callable[[Name], str]
    slot: Callable[[Slot], str]


def spell(value: Value, dialect: Dialect) -> Expression:
    """Return an expression for a parameter."""
    match value:
        case tuple():
            inner = tuple(spell(item, dialect) for item in value)
            return Group("(", inner, ",)" if len(inner) == 1 else ")")
        case list():
            return array([spell(item, dialect) for item in value])
        case dict():
            entries = [(lay_out(spell(key, dialect)), spell(item, dialect)) for key, item in value.items()]
            return Group("{", tuple(Keyed(f"{key}: ", item) for key, item in entries), "}")
        case SliceValue(start, stop, step):
            return call("slice", *(spell(part, dialect) for part in (start, stop, step)))
        case Made(api, args, kwargs):
            return spell_call(api, args, kwargs, dialect)
        case Held(tensor):
            return dialect.tensor(tensor)
        case Drawn():
            return dialect.drawn(value)
        case Name(kind, name):
            return name if kind == "special" else dialect.name(value)
        case Slot():
            return dialect.slot(value)
        case _:
            return literal(value)


def spell_call(function: str, args: Sequence[Value], kwargs: Mapping[str, Value], dialect: Dialect) -> Group:
    """Return a call of `function` with parameters; a keyword that is no identifier comes by way of a dict."""
    given = [spell(value, dialect) for value in args]
    plain = {name: spell(value, dialect) for name, value in kwargs.items() if _identifier(name)}
    odd: dict[Value, Value] = {name: value for name, value in kwargs.items() if not _identifier(name)}
    words: list[Expression] = [Keyed(f"{name}=", value) for name, value in plain.items()]
    return call(function, *given, *words, *([Keyed("**", spell(odd, dialect))] if odd else []))


def _identifier(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name)


def spell_drawn(value: Drawn) -> Expression:
    """Return an expression for the array of a recipe, which draws the same numbers.

    Raises ValueError for element types that numpy lacks: their tensors are to be spelled as they are.
    """
    if not native(value.dtype):
        raise ValueError(f"numpy draws no {value.dtype}")
    kind, shape = DTYPES[value.dtype].kind, value.shape
    rng = f"np.random.default_rng({value.seed})"
    if kind == "bool":
        return f"{rng}.integers(0, 2, {shape}).astype(bool)"
    end = f".astype(np.{value.dtype})"
    if kind in ("int", "uint"):
        low = int(value.low)
        return f"{rng}.integers({low}, {max(int(value.high), low + 1)}, {shape}){end}"
    drawn = f"rng.uniform({literal(value.low)}, {literal(value.high)}, {shape})"
    if kind == "complex":
        return f"(lambda rng: {drawn} + 1j * {drawn})({rng}){end}"
    return f"np.asarray({drawn.replace('rng', rng, 1)}){end}"

"""Printing of motifs, so that lifted patterns can be read, stored in a library, and pasted into a file of motifs.

`parse_motifs` of the text returns an equal motif; comments are lost.
"""

import math
from collections.abc import Iterable, Mapping

from miscompile.base.dtypes import FLOATS
from miscompile.patterns.language import (
    Argument,
    AttributeSetting,
    Elements,
    Full,
    Ints,
    Motif,
    MotifCall,
    MotifValue,
    Number,
    Numbers,
    Ref,
    Size,
    Statement,
    Weight,
    Word,
)


def print_motif(motif: Motif) -> str:
    """Return the text of `motif`: its header, a line for each statement, and the dtypes where they are not the default.

    It ends with a newline.
    """
    lines = [f"[{'noop: ' if motif.noop else ''}{motif.name}]", *map(_line, motif.statements)]
    if motif.dtypes != FLOATS:
        lines.append(f"dtypes({', '.join(map(_word, motif.dtypes))})")
    return "\n".join(lines) + "\n"


def _line(statement: Statement) -> str:
    match statement:
        case MotifValue():
            return f"{statement.name} = {_value(statement)}"
        case Weight(name, sizes, within, dtype):
            return f"{name} = weight({_joined(map(str, sizes), _options(dtype, within))})"
        case Numbers(name, elements):
            return f"{name} = {_elements(elements)}"
        case MotifCall(names, op, arguments, attributes):
            given = [f"{name}={_setting(value)}" for name, value in attributes]
            return f"{', '.join(names)} = {op}({', '.join([*map(_argument, arguments), *given])})"


def _value(statement: MotifValue) -> str:
    sizes = statement.sizes
    options: dict[str, str] = _options(statement.dtype, statement.within)
    if sizes is None:
        return f"value({_joined((), options)})"
    if not sizes and not statement.leading:
        return f"value({_joined((), {'rank': '0', **options})})"
    return f"value({_joined(('...',) * statement.leading + tuple(map(str, sizes)), options)})"


def _options(dtype: str | None, within: tuple[float, float] | None) -> dict[str, str]:
    options = {} if dtype is None else {"dtype": _word(dtype)}
    if within is not None:
        options |= {"lo": _number(within[0]), "hi": _number(within[1])}
    return options


def _joined(items: Iterable[str], options: Mapping[str, str]) -> str:
    return ", ".join([*items, *(f"{name}={value}" for name, value in options.items())])


def _elements(elements: Elements) -> str:
    options = {} if elements.sizes is None else {"sizes": _tuple(map(str, elements.sizes))}
    if elements.dtype is not None:
        options["dtype"] = _word(elements.dtype)
    return f"numbers({_joined((_tuple(map(_item, elements.values)),), options)})"


def _argument(argument: Argument) -> str:
    match argument:
        case None:
            return "_"
        case Ref(name):
            return name
        case Number(value):
            return _number(value)
        case Full(value, sizes):
            return f"full({_joined((_number(value), *map(str, sizes)), {})})"
        case Ints(values, scalar):
            return f"{'index' if scalar else 'ints'}({', '.join(map(str, values))})"


def _setting(setting: AttributeSetting) -> str:
    if isinstance(setting, Elements):
        return _elements(setting)
    if isinstance(setting, tuple):
        return _tuple(map(_item, setting))
    return _item(setting)


def _tuple(items: Iterable[str]) -> str:
    texts = list(items)
    return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"


def _item(item: Size | float) -> str:
    if isinstance(item, Word):
        return _word(item)
    return item if isinstance(item, str) else _number(item)


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return repr(value)


def _word(text: str) -> str:
    """Return `text` in quotes, in ASCII. A hash would begin a comment, even there."""
    escaped = text.encode("unicode_escape").decode("ascii")
    return '"' + escaped.replace('"', '\\"').replace("#", "\\x23") + '"'

"""The words of the motif language: names, numbers, sizes and quoted texts in a line parsed by Python's parser.

Nothing is evaluated. Any other syntax is a ValueError, because lines are written by hand.
"""

import ast
import math
from collections.abc import Collection
from typing import Any

_CONSTANTS = {"inf": math.inf, "nan": math.nan}
"""Numbers that Python writes as words; they are one object each, so that motifs with them are equal."""


def parsed(line: str) -> ast.stmt:
    """Return the one statement of a line. Raises SyntaxError or ValueError."""
    try:
        found = ast.parse(line).body
    except (RecursionError, MemoryError):  # raised by Python's parser for thousands of brackets or signs
        raise ValueError("this is nested too deeply") from None
    if len(found) != 1:
        raise ValueError("one statement stands in a line")
    return found[0]


def literal(node: ast.expr) -> Any:  # noqa: ANN401 - whatever a literal can be
    """Return the value of a literal. Raises ValueError for anything else."""
    try:
        return ast.literal_eval(node)
    except (TypeError, RecursionError, MemoryError):  # sets of lists, and thousands of signs
        raise ValueError("a number or a quoted word is expected") from None


def name_in(node: ast.expr) -> str:
    """Return a plain name."""
    if not isinstance(node, ast.Name):
        raise ValueError("a plain name is expected")
    if node.id in _CONSTANTS:
        raise ValueError(f"'{node.id}' is a number")
    return node.id


def is_name(node: ast.expr) -> bool:
    """Tell whether a node is a name that stands for no number."""
    return isinstance(node, ast.Name) and node.id not in _CONSTANTS


def number_in(node: ast.expr) -> float:
    """Return a number; `inf` and `nan` are some as well."""
    inner = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else node
    negative = inner is not node
    if isinstance(inner, ast.Name) and inner.id in _CONSTANTS:
        value = _CONSTANTS[inner.id]
        return -value if negative and value == math.inf else value
    value = literal(node)
    if not isinstance(value, int | float):
        raise ValueError("a number is expected")
    return value


def size_in(node: ast.expr) -> int | str:
    """Return a whole number, or the name of a size."""
    if isinstance(node, ast.Name):
        return name_in(node)
    value = number_in(node)
    if not (isinstance(value, int) or value.is_integer()):
        raise ValueError(f"a whole number is expected and not {value}")
    return int(value)


def sizes_in(node: ast.expr) -> tuple[int, ...]:
    """Return a tuple of whole numbers."""
    found = literal(node)
    if not isinstance(found, tuple) or not all(isinstance(one, int) and one >= 0 for one in found):
        raise ValueError("sizes are a tuple of whole numbers")
    return found


def text_in(node: ast.expr) -> str:
    """Return a quoted word."""
    value = literal(node)
    if not isinstance(value, str):
        raise ValueError("a quoted word is expected")
    return value


def keywords_of(call: ast.Call, allowed: Collection[str]) -> dict[str, ast.expr]:
    """Return the keywords of a call by name, all of which must be `allowed`."""
    given = {keyword.arg or "**": keyword.value for keyword in call.keywords}
    for one in given:
        if one not in allowed:
            raise ValueError(f"'{one}' is no setting here; there are {', '.join(allowed) or 'none'}")
    return given

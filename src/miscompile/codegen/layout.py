"""Layout of Python expressions: on one line where it fits, else on several as common formatters do it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

WIDTH = 120


@dataclass(frozen=True, slots=True)
class Group:
    """`opening` item, item `closing`: a call, a list or a dict display. `tall` puts each item on a line of its own.

    Items of a `glued` group (adjacent string literals) have no commas between them.
    """

    opening: str
    items: "tuple[Expression, ...]"
    closing: str
    tall: bool = False
    glued: bool = False


@dataclass(frozen=True, slots=True)
class Keyed:
    """`key` followed by `value`: a keyword argument or an entry of a dict."""

    key: str
    value: "Expression"


Expression: TypeAlias = str | Group | Keyed


def call(function: str, *arguments: Expression) -> Group:
    """Return a call."""
    return Group(f"{function}(", arguments, ")")


def array(items: Sequence[Expression], *, tall: bool = False) -> Group:
    """Return a list display."""
    return Group("[", tuple(items), "]", tall)


def assign(name: str, value: Expression) -> str:
    """Return the statement `name = value`."""
    return f"{name} = {lay_out(value, 0, len(name) + 3)}"


def lay_out(expression: Expression, indent: int = 0, before: int = 0, after: int = 0) -> str:
    """Return the source of `expression`, whose further lines begin at column `indent`.

    `before` columns of the first line are taken, and `after` columns of the last must stay free.
    """
    if isinstance(expression, str):
        return expression
    if isinstance(expression, Keyed):
        return expression.key + lay_out(expression.value, indent, before + len(expression.key), after)
    flat = _flat(expression)
    if flat is not None and indent + before + len(flat) + after <= WIDTH:
        return flat
    return _broken(expression, indent)


def _flat(expression: Expression) -> str | None:
    """Return the source on one line; None if a part of it must be tall."""
    if isinstance(expression, str):
        return expression
    if isinstance(expression, Keyed):
        value = _flat(expression.value)
        return None if value is None else expression.key + value
    parts = [_flat(item) for item in expression.items]
    if (expression.tall and parts) or (expression.glued and len(parts) > 1):
        return None
    whole = [part for part in parts if part is not None]
    return expression.opening + ", ".join(whole) + expression.closing if len(whole) == len(parts) else None


def _broken(group: Group, indent: int) -> str:
    inner, closing = " " * (indent + 4), group.closing
    parts = [_flat(item) for item in group.items]
    line = ", ".join(part for part in parts if part is not None)
    if not group.tall and not group.glued and None not in parts and len(inner) + len(line) <= WIDTH:
        body = f"{inner}{line}\n"
    elif group.glued:
        body = "".join(f"{inner}{lay_out(item, indent + 4)}\n" for item in group.items)
    else:
        body = "".join(f"{inner}{lay_out(item, indent + 4, 0, 1)},\n" for item in group.items)
        closing = closing.removeprefix(",")  # the comma that makes one item a tuple stands there already
    return f"{group.opening}\n{body}{' ' * indent}{closing}"

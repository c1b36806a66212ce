"""Release numbers of distributions: their order, and conditions such as `>=1.17,<2`.

The order is that of https://packaging.python.org/en/latest/specifications/version-specifiers/, without its wildcards
and without the `~=` and `===` operators, which no condition here needs.
"""

import operator
import re
from collections.abc import Callable
from typing import Any

from miscompile.base.errors import SpecError

_VERSION = re.compile(
    r"v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)"
    r"(?:[-_.]?(?P<pre>a|b|rc|alpha|beta|c|pre|preview)[-_.]?(?P<number>\d*))?"
    r"(?:[-_.]?(?:post|rev|r)[-_.]?(?P<post>\d*)|-(?P<bare>\d+))?"
    r"(?:[-_.]?(?P<dev>dev)[-_.]?(?P<days>\d*))?"
    r"(?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?",
    re.IGNORECASE,
)
_STAGES = {"a": 0, "alpha": 0, "b": 1, "beta": 1, "c": 2, "rc": 2, "pre": 2, "preview": 2}
_CONDITION = re.compile(r"\s*(<=|>=|==|!=|<|>)\s*(\S+)\s*")
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_FINAL = (9, 0)
"""Sort key of a final release, after every pre-release."""

VersionOrder = tuple[Any, ...]


def is_version(text: str) -> bool:
    """Tell whether `text` is a release number such as `1.20.1` or `0.27.0.post1`."""
    return _VERSION.fullmatch(text) is not None


def is_final(text: str) -> bool:
    """Tell whether `text` is no pre-release, development or local version. Raises SpecError when it is no version."""
    found = _match(text)
    return not (found["pre"] or found["dev"] or found["local"])


def order(text: str) -> VersionOrder:
    """Return a key that sorts versions; those that mean the same (`1.20`, `1.20.0`) have equal keys.

    Raises SpecError when `text` is no version.
    """
    found = _match(text)
    numbers = [int(piece) for piece in found["release"].split(".")]
    while len(numbers) > 1 and not numbers[-1]:
        numbers.pop()
    post = found["post"] if found["post"] is not None else found["bare"]
    after = -1 if post is None else int(post or 0)
    if found["pre"]:
        before = (_STAGES[found["pre"].lower()], int(found["number"] or 0))
    else:  # a development version of a final release stands before its pre-releases
        before = (-1, 0) if found["dev"] and post is None else _FINAL
    days = (0, int(found["days"] or 0)) if found["dev"] else (1, 0)
    local = tuple((piece.isdigit(), int(piece) if piece.isdigit() else 0, piece) for piece in _local(found))
    return int(found["epoch"] or 0), tuple(numbers), before, after, days, local


def satisfies(version: str, conditions: str) -> bool:
    """Tell whether `version` meets all of the comma-separated `conditions`; an empty text is met by every version.

    Local parts (`+cpu`) do not count. Raises SpecError when a condition does not parse.
    """
    own = order(version.partition("+")[0])
    for text in filter(None, (piece.strip() for piece in conditions.split(","))):
        found = _CONDITION.fullmatch(text)
        if not found:
            raise SpecError(f"'{text}' is no condition on a version; write <2, >=1.17 and the like")
        if not _OPERATORS[found[1]](own, order(found[2])):
            return False
    return True


def same_version(actual: str, wanted: str) -> bool:
    """Tell whether release `actual` meets `==wanted`; its local part counts only when `wanted` has one.

    False when `actual` is no version. Raises SpecError when `wanted` is none.
    """
    if not is_version(actual):
        return False
    return order(actual if "+" in wanted else actual.partition("+")[0]) == order(wanted)


def _local(found: "re.Match[str]") -> list[str]:
    return re.split(r"[-_.]", found["local"].lower()) if found["local"] else []


def _match(text: str) -> "re.Match[str]":
    found = _VERSION.fullmatch(text)
    if not found:
        raise SpecError(f"'{text}' is no version; write one such as 1.20.1")
    return found

"""The passes of each compiler: how often each changed a program, which never did, and which did together."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from miscompile.base.errors import UsageError
from miscompile.core.activity import Key
from miscompile.reports.site.content import Contents
from miscompile.targets.registry import parse_target

MOST_PASSES = 48
"""Passes in a matrix; those that changed most programs are in it, and the list has all."""

_SHADES = 6


@dataclass(frozen=True, slots=True)
class FiredPass:
    """A pass: programs that it changed, programs with a pattern of it and how many of those it changed, the passes
    that most often changed the same programs, and the findings that it is a culprit of."""

    name: str
    fired: int
    tried: int
    woken: int
    partners: Sequence[tuple[str, int]]
    findings: int


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """A cell of a matrix: row and column, the number of programs, and its shade from 1 to 6."""

    row: int
    column: int
    count: int
    shade: int


@dataclass(frozen=True, slots=True)
class PassesOf:
    """The passes of one target of a store; `watched` programs were compiled with observation."""

    label: str
    target: str
    watched: int
    rows: Sequence[FiredPass] = ()
    matrix: Sequence[str] = ()
    """The passes of the matrix, in the order of its rows and columns."""
    cells: Sequence[MatrixCell] = field(default=())
    never: Sequence[str] = ()


def passes_of(contents: Contents) -> list[PassesOf]:
    """Return the passes of each target whose programs were watched."""
    counts = contents.activity.counts
    targets = dict.fromkeys(key.target for key in counts)
    return [_passes(contents, target) for target in targets]


def _passes(contents: Contents, target: str) -> PassesOf:
    counts = {key: count for key, count in contents.activity.counts.items() if key.target == target}
    fired, tried, woken = (_of_kind(counts, kind) for kind in ("fired", "tried", "woken"))
    together: dict[str, dict[str, int]] = defaultdict(dict)
    for key, count in counts.items():
        if key.kind == "together":
            together[key.one][key.other] = together[key.other][key.one] = count
    blamed = [name for entry in contents.entries for name in entry.record.culprits if _is_of(entry.target, target)]
    names = sorted({*fired, *tried}, key=lambda name: (-fired.get(name, 0), name))
    rows = [
        FiredPass(
            name, fired.get(name, 0), tried.get(name, 0), woken.get(name, 0),
            sorted(together[name].items(), key=lambda item: (-item[1], item[0]))[:3], blamed.count(name),
        )
        for name in names
    ]  # fmt: skip
    matrix = [name for name in names if fired.get(name)][:MOST_PASSES]
    never = sorted({*_known_passes(target), *names} - {name for name, count in fired.items() if count})
    watched = counts.get(Key("programs", target), 0)
    return PassesOf(contents.label, target, watched, rows, matrix, _cells(matrix, fired, together), never)


def _cells(
    matrix: Sequence[str], fired: Mapping[str, int], together: Mapping[str, Mapping[str, int]]
) -> list[MatrixCell]:
    """Return the cells that are not empty; the diagonal has the programs that each pass changed."""
    found = []
    for row, one in enumerate(matrix):
        for column, other in enumerate(matrix):
            count = fired[one] if one == other else together.get(one, {}).get(other, 0)
            least = min(fired[one], fired[other])
            if count:
                shade = 1 + min(int(_SHADES * count / max(least, 1)), _SHADES - 1)
                found.append(MatrixCell(row, column, count, shade))
    return found


def _of_kind(counts: Mapping[Key, int], kind: str) -> dict[str, int]:
    return {key.one: count for key, count in counts.items() if key.kind == kind}


def _is_of(signature_target: str, target: str) -> bool:
    return signature_target.partition("==")[0].partition("{")[0] == target.partition("==")[0].partition("{")[0]


def _known_passes(target: str) -> Iterable[str]:
    """Return the passes that the target's description names; none for a target that is not installed here."""
    try:
        return parse_target(target).about.passes
    except UsageError:
        return ()

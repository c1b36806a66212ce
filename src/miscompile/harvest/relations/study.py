"""Relations between operators, after DeepREL (https://doi.org/10.1145/3540250.3549085).

Candidates are operators with matching parameters: operators with one signature (such as aliases), a function and the
method of its name, a function and the module of its name, and one function after another. Each runs on the other's
inputs. Equal results on all inputs are an equivalence, which the equivalence oracle may use. Accepting and rejecting
the same inputs is a status relation. In both cases the inputs of one operator become instances of the other.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Literal

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.base.errors import UsageError
from miscompile.core.tensor import Tensor
from miscompile.harvest.constraints.generate import Operation, assembled, values_of
from miscompile.instances.instance import CallStyle, Instance
from miscompile.instances.values import Drawn, Held, Value, tensor_of

InstanceResults = tuple[Tensor | None, ...]
InstanceRunner = Callable[[Instance], InstanceResults | None]
"""Runs an instance in its library; None when the library rejects it."""

RelatedBy = Literal["signature", "method", "module", "composed"]
RelationStrength = Literal["equivalent", "equal where both run", "status"]

ENOUGH = 5
"""The least number of inputs that both operators must accept for a relation to count."""

MEMBERS = 40
"""The most inputs on which a class of candidates runs."""

_RTOL, _ATOL = 1e-4, 1e-6


@dataclass(frozen=True, slots=True)
class Relation:
    """Two operators and their relation: both accepted `ran` inputs; `tried` also counts those that one or both
    rejected.

    `first` and `second` are import paths; of a composed relation `second` is applied first and `then` to its result.
    Equality is up to 1e-4 relatively and 1e-6 absolutely, the numerical noise of float32.
    """

    library: str
    first: str
    second: str
    how: RelatedBy
    verdict: RelationStrength
    ran: int
    tried: int
    forms: tuple[CallStyle, CallStyle] = ("function", "function")
    then: str = ""


def classes(operations: Iterable[Operation]) -> list[list[Operation]]:
    """Return the groups of two or more operations whose parameters have the same names, kinds and defaults."""
    found: defaultdict[tuple[object, ...], list[Operation]] = defaultdict(list)
    for one in operations:
        found[one.form, _shape(one)].append(one)
    return [members for members in found.values() if len(members) > 1]


def _shape(operation: Operation) -> tuple[object, ...]:
    """Return the key by which signatures match: positions and kinds in order, and the names of optional parameters."""
    parameters = operation.parameters
    return tuple((one.place, one.required, "" if one.required else one.name, one.kinds) for one in parameters)


def counterparts(operations: Sequence[Operation]) -> list[tuple[Operation, Operation, RelatedBy]]:
    """Return functions with the modules and methods of the same name, ignoring letter case and `_`."""
    named: defaultdict[str, list[Operation]] = defaultdict(list)
    for one in operations:
        named[_plain(one.api)].append(one)
    found: list[tuple[Operation, Operation, RelatedBy]] = []
    for group in named.values():
        for first, second in combinations(sorted(group, key=lambda one: one.form), 2):
            if first.form == "function" and second.form in ("method", "module"):
                found.append((first, second, second.form))
    return found


def _plain(api: str) -> str:
    return api.rpartition(".")[2].replace("_", "").lower()


def transferred(instance: Instance, source: Operation, target: Operation) -> Instance:
    """Return an instance of one operation as an instance of the other; required parameters match by position, others
    by name."""
    values = values_of(source, instance)
    ours = [one.name for one in source.parameters if one.required]
    theirs = [one for one in target.parameters if one.required or one.place == "called"]
    theirs.sort(key=lambda one: one.place != "called")  # the first parameters of a function are tensors
    names = {one.name for one in target.parameters}
    renamed: dict[str, str] = {}
    free = [one.name for one in theirs if one.name not in values]
    for name in ours:
        if name in values and name not in names and free:
            renamed[name] = free.pop(0)
    given: Mapping[str, Value] = {renamed.get(name, name): value for name, value in values.items()}
    return assembled(target, given)


def compare(first: InstanceResults | None, second: InstanceResults | None) -> bool:
    """Tell whether both results are equal up to rounding errors."""
    if first is None or second is None or len(first) != len(second):
        return False
    return all(map(_equal, first, second))


def _equal(one: Tensor | None, other: Tensor | None) -> bool:
    if one is None or other is None or one.dtype != other.dtype or one.shape != other.shape:
        return False
    if DTYPES[one.dtype].kind in ("float", "complex"):
        step = 8 * DTYPES[one.dtype].eps
        first, second = one.numbers(), other.numbers()
        with np.errstate(all="ignore"):
            return bool(np.allclose(first, second, max(_RTOL, step), max(_ATOL, step), equal_nan=True))
    return one.same(other)


def is_conclusive(results: InstanceResults | None) -> bool:
    """Tell whether results are conclusive: one of the tensors contains two different finite numbers."""
    for one in results or ():
        if one is not None and one.array.size > 1 and DTYPES[one.dtype].kind != "string":
            numbers = one.numbers().ravel()
            finite = numbers[np.isfinite(numbers)]
            if finite.size > 1 and bool((finite != finite[0]).any()):
                return True
    return False


def verdict_of(
    first: Sequence[InstanceResults | None], second: Sequence[InstanceResults | None]
) -> tuple[RelationStrength | None, int]:
    """Return the relation that two operators' results on the same inputs imply, and the number of inputs that both
    accepted."""
    both = [(one, other) for one, other in zip(first, second, strict=True) if one is not None and other is not None]
    alike = all((one is None) == (other is None) for one, other in zip(first, second, strict=True))
    if len(both) < ENOUGH:
        return None, len(both)
    if all(compare(one, other) for one, other in both) and any(is_conclusive(one) for one, _ in both):
        return ("equivalent" if alike else "equal where both run"), len(both)
    return ("status" if alike and len(both) < len(first) else None), len(both)


def study(
    members: Sequence[Operation], known: Mapping[str, Sequence[Instance]], run: InstanceRunner
) -> tuple[list[Relation], list[Instance]]:
    """Run operations of one signature on each other's inputs; return their relations and the new instances."""
    inputs = _inputs(members, known)
    if not inputs:
        return [], []
    made = [[transferred(instance, source, target) for instance, source in inputs] for target in members]
    results = [[run(one) for one in row] for row in made]
    relations: list[Relation] = []
    related: set[int] = set()
    for one, other in combinations(range(len(members)), 2):
        verdict, ran = verdict_of(results[one], results[other])
        if verdict is not None:
            related |= {one, other}
            names = (members[one].api, members[other].api)
            forms = (members[one].form, members[other].form)
            relations.append(Relation(members[one].library, *names, "signature", verdict, ran, len(inputs), forms))
    return relations, [
        replace(instance, source="relations", origin=f"from {source.api}")
        for place in sorted(related)
        for instance, (_, source), result in zip(made[place], inputs, results[place], strict=True)
        if result is not None and source.api != members[place].api
    ]


def _inputs(members: Sequence[Operation], known: Mapping[str, Sequence[Instance]]) -> list[tuple[Instance, Operation]]:
    """Return inputs of all members in turn, so that each contributes equally many."""
    columns = [[(instance, one) for instance in known.get(one.api, ())] for one in members]
    longest = max((len(column) for column in columns), default=0)
    turns = [column[place] for place in range(longest) for column in columns if place < len(column)]
    return turns[: max(MEMBERS, len(members) // 2)]


def study_pair(
    pair: tuple[Operation, Operation, RelatedBy], known: Mapping[str, Sequence[Instance]], run: InstanceRunner
) -> tuple[list[Relation], list[Instance]]:
    """Run a function and its method or module on each other's inputs; return their relation and the new instances."""
    first, second, how = pair
    relations, instances = study((first, second), known, run)
    return [replace(one, how=how) for one in relations], instances


def compositions(
    unary: Sequence[Operation],
    inputs: Sequence[Instance],
    run: InstanceRunner,
    after: Callable[[Instance, InstanceResults], Instance | None],
) -> Iterator[Relation]:
    """Yield relations `first(x) = then(second(x))` between operations of one tensor.

    `after` replaces an instance's tensor by a result. Operations that change nothing on these inputs, and
    compositions equal to `second` alone, are omitted because they prove nothing.
    """
    alone = {one.api: [run(transferred(item, unary[0], one)) for item in inputs] for one in unary}
    plain = [one for one in unary if sum(is_conclusive(result) for result in alone[one.api]) >= ENOUGH]
    same = [_given(item) for item in inputs]
    plain = [one for one in plain if not all(map(_unchanged, alone[one.api], same))]
    plain = _one_of_each(plain, alone)
    for second in plain:
        stage = [
            None if result is None else after(item, result)
            for item, result in zip(inputs, alone[second.api], strict=True)
        ]
        for then in plain:
            results = [None if item is None else run(transferred(item, unary[0], then)) for item in stage]
            if (
                sum(is_conclusive(result) for result in results) < ENOUGH
                or verdict_of(results, alone[second.api])[0] == "equivalent"
            ):
                continue
            for first in plain:
                verdict, ran = verdict_of(alone[first.api], results)
                if verdict == "equivalent" and first.api not in (second.api, then.api):
                    names = (first.api, second.api)
                    yield Relation(first.library, *names, "composed", verdict, ran, len(inputs), then=then.api)


def _one_of_each(
    operations: Sequence[Operation], alone: Mapping[str, Sequence[InstanceResults | None]]
) -> list[Operation]:
    """Return the operations without those with the results of an earlier one: these are aliases, whose relations are
    known."""
    kept: list[Operation] = []
    for one in operations:
        if not any(verdict_of(alone[other.api], alone[one.api])[0] == "equivalent" for other in kept):
            kept.append(one)
    return kept


def _given(instance: Instance) -> InstanceResults:
    return tuple(tensor_of(value) for value in (*instance.args, *instance.inputs) if isinstance(value, Held | Drawn))


def _unchanged(result: InstanceResults | None, given: InstanceResults) -> bool:
    return result is None or compare(result, given[:1])


def write_relations(
    relations: Iterable[Relation],
    path: Path,
    versions: Mapping[str, str],
    refuted: Callable[[Relation], str] = lambda relation: "",
) -> None:
    """Write relations as JSON, status relations as groups. Raises UsageError when the file cannot be written.

    `refuted` returns the reason why an observed relation does not hold; relations with a reason are listed
    separately too.
    """
    found = list(relations)
    kept = [one for one in found if one.verdict != "status"]
    reasons = [(one, refuted(one)) for one in kept]
    data = {
        "versions": dict(versions),
        "relations": [asdict(one) for one in kept],
        "refuted": [
            {"first": one.first, "second": one.second, "then": one.then, "reason": reason}
            for one, reason in reasons
            if reason
        ],
        "status": _groups(found),
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(data, indent=1) + "\n", "utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from None


def _groups(relations: Iterable[Relation]) -> list[list[str]]:
    """Return groups of operators that accept and reject the same inputs."""
    heads: dict[str, str] = {}

    def head(name: str) -> str:
        while heads.setdefault(name, name) != name:
            name = heads[name]
        return name

    for one in relations:
        if one.verdict == "status":
            heads[head(one.second)] = head(one.first)
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for name in sorted(heads):
        groups[head(name)].append(name)
    return sorted(groups.values())


def read_relations(path: Path) -> list[Relation]:
    """Return the equivalences in a file of `write_relations`. Raises UsageError for anything else."""
    try:
        rows = json.loads(path.read_text("utf-8"))["relations"]
        return [Relation(**{**row, "forms": tuple(row["forms"])}) for row in rows]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} holds no relations ({type(error).__name__}: {error})") from None

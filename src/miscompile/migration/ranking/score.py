"""The two scores of OPERA (section III-B) and the counts that they use.

An operator's score is Num_DLL / Num_DLC: how often it occurs in the library's tests over how often it occurs in the
compiler's own tests, both counted under the same name (`key_of`). Instances that are restated or generated are no tests
of the library, and do not count. The paper does not define the score of an operator that the compiler never tests. Here
it counts as if it were tested once, so that its score is bounded by the library's tests, because a compiler often does
not support the operators that it does not test.

An instance's score is the share of its parameters and of the pairs of its parameters whose values lie in a subspace (a
pair of subspaces) that no instance of the same operator which is ranked already lies in. The paper's "percentage of
parameters or pair-wise parameter combinations" is read as one percentage, over both together. The parameters are all
that any instance of the operator gives: one that is left at its default is a parameter with a value, too.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from miscompile.instances.instance import Instance
from miscompile.instances.sequence import SOURCE, layer_of
from miscompile.migration.ranking.partition import ABSENT, Subspace, setting

MADE = frozenset({"versions", "constraints", "relations", "neighbours", SOURCE})
"""Sources of instances that this tool derived from others or from documentation, not from the library's tests."""

OperatorKey = tuple[str, str]
"""The identity of an operator: its path, and the way of its call."""


def operator_of(instance: Instance) -> OperatorKey:
    """Return the operator of an instance; a layer in a sequence is that layer, called in another way."""
    layer = layer_of(instance)
    return (instance.api, instance.form) if layer is instance else (layer.api, SOURCE)


def key_of(library: str, api: str) -> str:
    """Return the name under which an operator is counted in tests of compilers.

    Of ONNX that is the operator's name, without its domain. Tests of torch and Keras reach one operator by several ways
    (`torch.nn.Conv2d`, `torch.nn.functional.conv2d`, `x.add_(y)`), which cannot be told apart without running them and
    which front ends convert alike; so the last part of the path counts, in lower case and without underscores.
    """
    if library == "onnx":
        return api.rpartition(".")[2]
    return api.rpartition(".")[2].lower().replace("_", "")


def signature_scores(instances: Sequence[Instance], counts: Mapping[str, int]) -> dict[OperatorKey, float]:
    """Return the score of every operator among the instances of one library.

    `counts` says how often a compiler's own tests use an operator, by `key_of`; operators that are not in it count as
    tested once, as do those with a count of 0. So do operators that only generated instances have, in the library.
    """
    keys = {operator_of(instance): key_of(instance.library, operator_of(instance)[0]) for instance in instances}
    uses = Counter(keys[operator_of(instance)] for instance in instances if instance.source not in MADE)
    return {one: max(1, uses[key]) / max(1, counts.get(key, 0)) for one, key in keys.items()}


@dataclass(slots=True)
class Settings:
    """The instances of one operator as rows of subspaces, with the number of new items of each.

    Instances with equal rows are one row: when one of them has been ranked, the others add nothing. `rows` are numbers
    of subspaces, one column a parameter; `places` are the places of each row's instances in the list that was given.
    An item is a subspace of a parameter or a pair of subspaces of two parameters. It is met once, and then taken off
    the rows that have it; so ranking all rows costs no more than writing down their items.
    """

    rows: npt.NDArray[np.int32]
    places: list[list[int]]
    fresh: npt.NDArray[np.int64] = field(init=False)
    """The number of items of each row that are new."""
    _items: npt.NDArray[np.int64] = field(init=False)
    _met: npt.NDArray[np.bool_] = field(init=False)
    _owners: npt.NDArray[np.int64] = field(init=False)
    _starts: npt.NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        """Number the items, which are all new at first. An operator without parameters has one item."""
        _, inverse = np.unique(_codes(self.rows), return_inverse=True)
        count = len(self.rows)
        self._items = inverse.reshape(count, -1)
        width = self._items.shape[1]
        self.fresh = np.full(count, width, np.int64)
        flat = self._items.ravel()
        self._owners = np.argsort(flat, kind="stable") // width
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(flat))])
        self._met = np.zeros(len(self._starts) - 1, bool)

    def best(self) -> int:
        """Return the row with the highest score, the first of several."""
        return int(self.fresh.argmax())

    def score(self, row: int) -> float:
        """Return the share of a row's parameters and pairs of parameters that cover something new."""
        return float(self.fresh[row] / self._items.shape[1])

    def take(self, row: int) -> None:
        """Rank an instance of `row`; its items are no longer new in any row."""
        items = self._items[row]
        for item in items[~self._met[items]].tolist():
            self.fresh[self._owners[self._starts[item] : self._starts[item + 1]]] -= 1
        self._met[items] = True


def _codes(rows: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Return, for each row, a number for each parameter and each pair of parameters, different in every column."""
    first, second = np.triu_indices(rows.shape[1])
    if not len(first):
        return np.zeros((len(rows), 1), np.int64)
    radix = 1 + int(rows.max())
    table = rows.astype(np.int64)
    pairs = table[:, first] * radix + table[:, second]
    return np.asarray(pairs + np.arange(len(first), dtype=np.int64) * radix**2)


def settings_of(instances: Sequence[Instance], order: Iterable[int]) -> dict[OperatorKey, Settings]:
    """Return the settings of every operator. Rows, and instances within a row, stand as `order` names them."""
    found: dict[OperatorKey, list[tuple[int, dict[str, Subspace]]]] = {}
    for place in order:
        found.setdefault(operator_of(instances[place]), []).append((place, setting(instances[place])))
    return {operator: _table(entries) for operator, entries in found.items()}


def _table(entries: Sequence[tuple[int, Mapping[str, Subspace]]]) -> Settings:
    names = sorted({name for _, given in entries for name in given})
    numbers: list[dict[Subspace, int]] = [{} for _ in names]
    rows: dict[tuple[int, ...], list[int]] = {}
    for place, given in entries:
        row = tuple(
            seen.setdefault(given.get(name, ABSENT), len(seen)) for name, seen in zip(names, numbers, strict=True)
        )
        rows.setdefault(row, []).append(place)
    table = np.array(list(rows), np.int32).reshape(len(rows), len(names))
    return Settings(table, list(rows.values()))

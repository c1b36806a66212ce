"""CPU seconds that each order needs to rank instances: synthetic ones, and those of archives.

Synthetic instances are spread over 500 operators as unevenly as those of library tests are, and reach as many
statements as a front end in Python has. The scores of operators are drawn.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from evaluation.opera.orders import ORDERS, CoveredFacts, ranked
from miscompile.base.rng import stream
from miscompile.instances.archive import read_archive
from miscompile.instances.code import digest_of
from miscompile.instances.instance import Instance
from miscompile.instances.values import Drawn, Name, Value
from miscompile.migration.ranking.score import key_of

OPERATORS = 500
STATEMENTS = 6_000


def synthetic(count: int, seed: int = 0) -> list[Instance]:
    """Return `count` instances of made-up operators with up to twelve parameters."""
    rng = stream(seed, "synthetic")
    found = []
    for number in range(count):
        operator = int(OPERATORS * rng.random() ** 3)
        kinds = stream(seed, "signature", operator)
        given: dict[str, Value] = {}
        for name in range(kinds.randint(0, 12)):
            kind = kinds.randrange(5)
            if rng.random() < 0.5:
                given[f"p{name}"] = (
                    rng.randint(-3, 5), rng.uniform(-1, 1), rng.random() < 0.5, rng.choice(("same", "valid", "full")),
                    tuple(rng.randint(0, 3) for _ in range(rng.randint(1, 3))),
                )[kind]  # fmt: skip
        shape = tuple(rng.randint(0, 5) for _ in range(rng.randint(0, 5)))
        tensor = Drawn(rng.choice(("float32", "int64", "bool")), shape, seed=number)
        found.append(Instance("torch", f"torch.op{operator}", "function", (tensor, Name("dtype", "int32")), given))
    return found


def facts_of(instances: Sequence[Instance]) -> CoveredFacts:
    """Return drawn counts and coverage: shared statements, those of the operator, and a few of the instance."""
    counts = {key_of(one.library, one.api): stream(0, one.api).randint(0, 30) for one in instances}
    coverage: dict[str, frozenset[int | str]] = {}
    for one in instances:
        own = stream(0, "statements", one.api)
        lines = {own.randrange(STATEMENTS) for _ in range(60)}
        varying = sorted(lines)[:: 1 + len(one.kwargs)]
        coverage[digest_of(one)] = frozenset([*range(300), *(STATEMENTS + line for line in varying)])
    return CoveredFacts(counts=counts, coverage=coverage)


def measure(sizes: Sequence[int], archives: Sequence[Path] = ()) -> dict[str, dict[str, float]]:
    """Return the CPU seconds of every order, by set of instances. Raises UsageError for a file that is no archive."""
    sets = {f"{size:,} synthetic": synthetic(size) for size in sizes}
    for path in archives:
        instances = list(read_archive(path).instances)
        sets[f"{len(instances):,} of {path.name}"] = instances
    return {name: seconds(instances) for name, instances in sets.items()}


def seconds(instances: Sequence[Instance]) -> dict[str, float]:
    """Return the CPU seconds of every order."""
    facts = facts_of(instances)
    found = {}
    for name in ORDERS:
        begin = time.process_time()
        places = ranked(name, instances, facts)
        found[name] = time.process_time() - begin
        assert sorted(places) == list(range(len(instances)))
    return found


def table(figures: Mapping[str, Mapping[str, float]]) -> str:
    """Return a line for every set of instances."""
    lines = [f"{'seconds':<40}{''.join(f'{name:>11}' for name in ORDERS)}"]
    lines += [f"{name:<40}{''.join(f'{row[order]:>11.2f}' for order in ORDERS)}" for name, row in figures.items()]
    return "\n".join(lines)

"""CPU seconds that each order needs to rank instances: 1,000, 10,000 and 30,000 synthetic ones, and those of archives.

    python benchmarks/ranking.py [ARCHIVE...]

Synthetic instances are spread over 500 operators as unevenly as those of library tests are, and reach as many
statements as a front end in Python has. The scores of operators are drawn.
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from miscompile.base.rng import stream
from miscompile.instances.archive import read_archive
from miscompile.instances.code import digest_of
from miscompile.instances.instance import Instance
from miscompile.instances.values import Drawn, Name, Value
from miscompile.migration.ranking.order import ORDERS, Facts, ranked
from miscompile.migration.ranking.score import key_of

SIZES = (1_000, 10_000, 30_000)
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


def facts_of(instances: Sequence[Instance]) -> Facts:
    """Return drawn counts and coverage: shared statements, those of the operator, and a few of the instance."""
    counts = {key_of(one.library, one.api): stream(0, one.api).randint(0, 30) for one in instances}
    coverage: dict[str, frozenset[int | str]] = {}
    for one in instances:
        own = stream(0, "statements", one.api)
        lines = {own.randrange(STATEMENTS) for _ in range(60)}
        varying = sorted(lines)[:: 1 + len(one.kwargs)]
        coverage[digest_of(one)] = frozenset([*range(300), *(STATEMENTS + line for line in varying)])
    return Facts(counts=counts, coverage=coverage)


def measured(instances: Sequence[Instance]) -> list[float]:
    """Return the CPU seconds of every order."""
    facts = facts_of(instances)
    found = []
    for name in ORDERS:
        begin = time.process_time()
        places = ranked(name, instances, facts)
        found.append(time.process_time() - begin)
        assert sorted(places) == list(range(len(instances)))
    return found


def main(archives: Sequence[str]) -> None:
    """Print a line for every set of instances."""
    sets = {f"{size:,} synthetic": synthetic(size) for size in SIZES}
    for path in archives:
        instances = list(read_archive(Path(path)).instances)
        sets[f"{len(instances):,} of {Path(path).name}"] = instances
    print(f"{'seconds':<40}", *(f"{name:>11}" for name in ORDERS), sep="")
    for name, instances in sets.items():
        print(f"{name:<40}", *(f"{seconds:>11.2f}" for seconds in measured(instances)), sep="", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

"""Mining from programs that nobody wrote a test for: generated graphs, and onnx's own node cases.

Whatever the programs are, a pattern is what is left of one when it is shrunk for as long as a pass fires.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain

from miscompile.base.rng import stream
from miscompile.core.case import Case
from miscompile.corpus.node_cases import node_cases
from miscompile.environments.resolve import versions_of
from miscompile.execution.pool import LocalPool
from miscompile.generation.knobs import Knobs
from miscompile.generation.strict import Strict
from miscompile.mining.firings import Mining, mine
from miscompile.ops.support import Support
from miscompile.patterns.pattern import Pattern
from miscompile.targets.registry import parse_target

_OPSETS = tuple(range(13, 23))


def generated(target: str, support: Support, seed: int) -> Iterator[Case]:
    """Yield generated programs that `target` takes, without end; their motifs help to wake what is rare."""
    newest = parse_target(target).about.max_opset
    opsets = tuple(opset for opset in _OPSETS if opset <= newest) or (newest,)
    strict = Strict(Knobs(opsets=opsets, variants=1, motifs=0.3), support)
    rng = stream(seed, "mining", target)
    while True:
        yield strict.propose(rng)


def documented(target: str) -> Iterator[Case]:
    """Yield onnx's node cases, as far as they are made of tensors."""
    newest = parse_target(target).about.max_ir_version
    return (one.case for one in node_cases(newest) if one.case is not None)


def _mixed(finite: Iterator[Case], endless: Iterator[Case]) -> Iterator[Case]:
    """Yield two endless cases after each finite one, and then those alone."""
    for case in finite:
        yield from (case, next(endless), next(endless))
    yield from endless


def mined(
    target: str,
    support: Support,
    seconds: float,
    wanted: Collection[str],
    each: int,
    seed: int,
    say: Callable[[str], None],
    more: Iterable[Case] = (),
) -> Iterator[Pattern]:
    """Yield patterns for passes of `target` (`wanted`, or all), from node cases, `more` cases and generated programs.

    At most `each` for a pass, and none after `seconds`. Raises UsageError for a target that is not here.
    """
    versions_of(target)
    until = float("inf")

    def programs() -> Iterator[Case]:
        nonlocal until
        for number, case in enumerate(_mixed(chain(documented(target), more), generated(target, support, seed))):
            until = min(until, time.monotonic() + seconds)  # to collect the node cases takes a while
            if time.monotonic() > until:
                return
            if number % 100 == 0:
                say(f"{target}: {number} programs")
            yield case

    with LocalPool(target) as pool:
        for pattern in mine(programs(), target, pool, wanted or None, mining=Mining(each=each)):
            say(f"{pattern.name}: {', '.join(pattern.operators)}")
            yield pattern
            if time.monotonic() > until:
                return

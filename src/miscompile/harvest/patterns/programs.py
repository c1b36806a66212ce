"""Mining from programs other than tests of passes: generated graphs, onnx's node cases, a user's models.

A pattern is the result of reducing a program for as long as a pass fires.
"""

import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

from miscompile.base.errors import ModelError, NothingTested, UsageError
from miscompile.base.rng import stream
from miscompile.core.case import Case
from miscompile.core.events import ProgressListener
from miscompile.environments.resolve import versions_of
from miscompile.execution.pool import LocalPool
from miscompile.harvest.patterns.pass_miner import Mining, mine
from miscompile.ops.support import Support
from miscompile.patterns.pattern import Pattern
from miscompile.producers.around import Around
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.slices.collection import models_below
from miscompile.producers.slices.node_cases import node_cases
from miscompile.producers.strict import Strict
from miscompile.targets.registry import parse_target
from miscompile.transforms.static import specialise

_OPSETS = tuple(range(13, 23))
_FEEDS = 2
"""Number of feeds tried for a model, because one may have invalid elements for shapes."""


def generated(target: str, support: Support, seed: int) -> Iterator[Case]:
    """Yield endlessly generated programs that `target` supports; their motifs help to trigger rare passes."""
    newest = parse_target(target).about.max_opset
    opsets = tuple(opset for opset in _OPSETS if opset <= newest) or (newest,)
    strict = Strict(GeneratorOptions(opsets=opsets, variants=1, motifs=0.3), support)
    rng = stream(seed, "mining", target)
    while True:
        yield strict.propose(rng)


def documented(target: str) -> Iterator[Case]:
    """Yield those of onnx's node cases whose values are all tensors."""
    newest = parse_target(target).about.max_ir_version
    return (one.case for one in node_cases(newest) if one.case is not None)


def of_models(path: Path, seed: int, on_progress: ProgressListener) -> Iterator[Case]:
    """Yield the model at `path`, or all models below that folder, each on two feeds.

    `on_progress` receives a line about each excluded model. Symbolic sizes become the sizes of the feed,
    because patterns have fixed sizes. Raises UsageError when there is no model.
    """
    if not path.exists():
        raise UsageError(f"there is no model or folder of models at {path}")
    for model in models_below(path) if path.is_dir() else [path]:
        try:
            around = Around(model)
        except (ModelError, NothingTested) as error:
            on_progress(f"{model} is left out: {error}")
            continue
        rng = stream(seed, "models", model.name)
        for _ in range(_FEEDS):
            case = around.propose(rng)
            program = specialise(case.program, case.feeds[0])
            yield replace(case, program=program, recipe={**case.recipe, "source": model.name})


def _mixed(finite: Iterator[Case], endless: Iterator[Case]) -> Iterator[Case]:
    """Yield two endless cases after each finite one, then only endless ones."""
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
    on_progress: ProgressListener,
    more: Iterable[Case] = (),
    only: Iterable[Case] | None = None,
) -> Iterator[Pattern]:
    """Yield patterns for passes of `target` (`wanted`, or all), from node cases, `more` cases and generated programs.

    With `only` it uses only `more`. Yields at most `each` patterns for a pass, and none after `seconds`. Raises
    UsageError for a target that is not installed.
    """
    versions_of(target)
    until = float("inf")

    def programs() -> Iterator[Case]:
        nonlocal until
        usual = _mixed(chain(documented(target), more), generated(target, support, seed))
        for number, case in enumerate(usual if only is None else only):
            until = min(until, time.monotonic() + seconds)  # late, because collecting the node cases takes a while
            if time.monotonic() > until:
                return
            if number % 100 == 0:
                on_progress(f"{target}: {number} programs")
            yield case

    with LocalPool(target) as pool:
        for pattern in mine(programs(), target, pool, wanted or None, mining=Mining(each=each)):
            on_progress(f"{pattern.name}: {', '.join(pattern.operators)}")
            yield pattern
            if time.monotonic() > until:
                return

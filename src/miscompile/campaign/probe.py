"""The capability probe: which operator, version and dtype combinations a target takes, found by asking it.

Single-operator programs are built without optimisation; the answers make the support table, which is cached for
each version of target and tool. A program that kills the worker counts as taken: the campaign shall find it.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from platformdirs import user_cache_path

from miscompile import __version__
from miscompile.base.digest import digest_words
from miscompile.base.errors import RejectedDraft
from miscompile.base.rng import stream
from miscompile.core.outcome import OutOfMemory, Raised, Rejected, Unsupported
from miscompile.core.ports import Runner
from miscompile.core.run import Build, Run
from miscompile.generation.sweep import Single, draft_single
from miscompile.ops.registry import dtypes_of, schema, specs
from miscompile.ops.spec import Limits
from miscompile.ops.support import (
    TABLES,
    Answer,
    Support,
    detail_of,
    family_of,
    gather,
    key_of,
    support_from,
    traits_of,
)
from miscompile.ops.values import Style
from miscompile.targets.known import known
from miscompile.targets.registry import parse_target

_SAMPLES = 10
_FEWEST = 80
"""Samples of an operator in all its dtypes and versions, so that rare forms of operators with few dtypes are met."""
_BATCH = 64
_FORMAT = 9


Watcher = Callable[[int, int], None]
"""Told how many of how many (operator, dtype, version) triples are done."""


def support_of(
    target: str, versions: dict[str, str], opsets: Sequence[int], runner: Runner, watch: Watcher | None = None
) -> Support:
    """Return the support table of `target`, from the cache or by probing through `runner`."""
    path = _cache_path(target, versions, opsets)
    cached = _load(path)
    if cached is not None:
        return cached
    table = probe(target, opsets, runner, watch)
    _save(path, table)
    return table


def probe(target: str, opsets: Sequence[int], runner: Runner, watch: Watcher | None = None) -> Support:
    """Ask `target` about every operator, dtype and schema version within `opsets`."""
    triples = list(_triples(opsets))
    share = Counter(op for op, _, _ in triples)
    answers: list[Answer] = []
    pending: list[Single] = []
    for done, (op, dtype, opset) in enumerate(triples):
        pending += _samples(op, dtype, opset, max(_SAMPLES, -(-_FEWEST // share[op])))
        if len(pending) >= _BATCH or done == len(triples) - 1:
            answers += _ask(target, pending, runner)
            pending = []
            if watch:
                watch(done + 1, len(triples))
    return gather(answers)


def _triples(opsets: Sequence[int]) -> Iterator[tuple[str, str, int]]:
    for op in specs():
        asked = set()
        for opset in sorted(opsets, reverse=True):
            form = schema(op, opset)
            for dtype in dtypes_of(op, opset):
                key = (dtype, form.since_version if form else opset)
                if key not in asked:
                    asked.add(key)
                    yield op, dtype, opset


def _samples(op: str, dtype: str, opset: int, wanted: int) -> list[Single]:
    everything = Support(open=True)
    found: list[Single] = []
    for number in range(3 * wanted):
        rng = stream(0, "probe", op, dtype, opset, number)
        style = Style(integral=number % 2 == 0, full=number % 4 < 2)
        try:
            found.append(draft_single(rng, op, dtype, opset, Limits(max_dim=5, max_elements=256), style, everything))
        except RejectedDraft:
            continue
        if len(found) == wanted:
            break
    return found


def _ask(target: str, singles: list[Single], runner: Runner) -> Iterator[Answer]:
    runs = [Run(single.case("probe"), target, Build("off"), "probe") for single in singles]
    for single, outcome in zip(singles, runner.run(runs), strict=True):
        opset, call, types = single.scope.opset, single.call, single.types
        if not isinstance(outcome, Raised):  # an error that is not a refusal says nothing of support
            yield Answer(
                key_of(call, types, opset),
                detail_of(call, types, opset),
                family_of(call),
                frozenset(traits_of(call)),
                taken=not isinstance(outcome, Unsupported | Rejected | OutOfMemory),
            )


def _cache_path(target: str, versions: dict[str, str], opsets: Sequence[int]) -> Path:
    words = [target, __version__, str(_FORMAT), *(f"{k}={v}" for k, v in sorted(versions.items())), *map(str, opsets)]
    names = sorted(f"{op}:{','.join(spec.dtypes)}" for op, spec in specs().items())
    refusals = known(parse_target(target).about.name).rejections  # what counts as a refusal decides the table
    words += [f"{entry.status}={entry.pattern.pattern}" for entry in refusals]
    return user_cache_path("miscompile") / "support" / f"{digest_words(*words, *names):016x}.json"


def _load(path: Path) -> Support | None:
    """Read a cached table; an absent or damaged file means probing again."""
    try:
        data = json.loads(path.read_text("utf-8"))
        return support_from(data)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _save(path: Path, table: Support) -> None:
    """Write the table; a cache that cannot be written only costs the next start a probe."""
    data = {name: sorted(getattr(table, name)) for name in TABLES}
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps(data), "utf-8")
        temporary.replace(path)
    except OSError:
        return

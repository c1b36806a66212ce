"""The capability probe: measures which combinations of operator, version and dtype a target accepts.

The probe builds single-operator programs without optimisation. The results make the support table, which is cached for
each version of target and tool. A program that kills the worker counts as accepted, because the campaign must find that
crash. The probe works in rounds; each round tests every combination once, the commonest dtypes first. The time for a
slow compiler is limited, and the next session continues the probe. Combinations that were not probed are not generated.
The operators that a campaign was given are probed before all others.
"""

import json
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from miscompile import __version__
from miscompile.base.digest import digest_words
from miscompile.base.errors import RejectedDraft, UsageError
from miscompile.base.rng import stream
from miscompile.core.outcome import Defect, OutOfMemory, Raised, Rejected, Unsupported
from miscompile.core.ports import Runner
from miscompile.core.run import Build, Run
from miscompile.ops.registry import dtypes_of, schema, specs
from miscompile.ops.spec import OperatorLimits
from miscompile.ops.support import (
    TABLES,
    Support,
    SupportAnswer,
    detail_of,
    family_of,
    gather,
    key_of,
    support_from,
    traits_of,
)
from miscompile.ops.values import Style
from miscompile.producers.control.forms import Question, questions
from miscompile.producers.motifs.containers import questions as container_questions
from miscompile.producers.sweep import Single, draft_single
from miscompile.targets.known import known
from miscompile.targets.registry import parse_target

_SAMPLES = 10
_FEWEST = 80
"""Least samples of an operator over all dtypes and versions, so that operators with few dtypes are varied enough."""
_REFUSALS = 3
"""Refusals without an acceptance after which a rare element type is no longer probed for an operator."""
_DRAFTS = 3
"""Drafts for each sample, because some drafts fail."""
_BATCH = 48
_FIRST = 2
"""Questions of the first batch of a probe of limited time; a batch that runs is not interrupted."""
_BATCH_SECONDS = 4.0
"""Seconds that a batch should take at most, so that the number of answered questions moves."""
_COMMON = ("float32", "int64", "bool", "int32", "float16", "uint8", "int8", "float64")
"""Element types in the order in which they are probed; others follow."""
_EAGER = 3
"""Samples of each combination of the operators that are probed first, before those of others."""
_FORMAT = 19

Watcher = Callable[[int, int], None]
"""Called with the number of finished questions and their total."""

Triple = tuple[str, str, int]
"""Operator, element type, opset."""


def support_of(
    target: str,
    versions: dict[str, str],
    opsets: Sequence[int],
    runner: Runner,
    first: Collection[str] = (),
    watch: Watcher | None = None,
    seconds: float | None = None,
) -> Support:
    """Return the support table of `target`, from the cache or by probing through `runner`.

    Probing stops after `seconds` (None: no limit); the table then holds the answers so far. The operators `first` are
    asked about before all others. Raises UsageError, and does not change the cache, when the target accepted nothing
    because it raises errors that are no refusals.
    """
    path, inquiry = _cache_path(target, versions, opsets), Inquiry(opsets, first)
    whole, state = path, _load(path)
    if first and (state is None or "table" not in state):
        inquiry.learn(state or {})
        path = _cache_path(target, versions, opsets, first)
        state = _load(path)
    if state is not None:
        if "table" in state:
            return support_from(state["table"])
        inquiry.resume(state)
    table = inquiry.go_on(target, runner, watch, seconds)
    if not inquiry.fruitful:
        _require_no_error(target, inquiry, runner)
    if inquiry.done:
        if path != whole:
            with suppress(OSError):
                path.unlink(missing_ok=True)
        _save(whole, {"table": {name: sorted(getattr(table, name)) for name in TABLES}})
    else:
        _save(path, inquiry.state())
    return table


def probe(target: str, opsets: Sequence[int], runner: Runner, watch: Watcher | None = None) -> Support:
    """Ask `target` about every operator, dtype and schema version within `opsets`."""
    return Inquiry(opsets).go_on(target, runner, watch, None)


class Inquiry:
    """All questions in their order, how far they have been asked, and the answers so far.

    The operators `first` come before all others.
    """

    def __init__(self, opsets: Sequence[int], first: Collection[str] = ()) -> None:
        self._commonest = sorted(_triples(opsets), key=_rank)
        self._triples = sorted(self._commonest, key=lambda triple: triple[0] not in first)
        share = Counter(op for op, _, _ in self._triples)
        newest = {op: max(opset for one, _, opset in self._triples if one == op) for op in share}
        self._wanted = [
            max(_samples(op, dtype, opset == newest[op]), -(-_FEWEST // share[op]))
            for op, dtype, opset in self._triples
        ]
        self._each = [  # Cast first, because conversions between types need it, and many probes end early
            wanted if op == "Cast" else min(wanted, _EAGER) if op in first else 1
            for (op, _, _), wanted in zip(self._triples, self._wanted, strict=True)
        ]
        self._rounds = max(
            (-(-_DRAFTS * wanted // each) for wanted, each in zip(self._wanted, self._each, strict=True)), default=0
        )
        self._found = [0] * len(self._triples)
        self._refused = [0] * len(self._triples)
        self._answers: list[SupportAnswer] = []
        self._learnt: list[SupportAnswer] = []
        self._next = (0, 0)
        self._blocks = [*questions(opsets), *container_questions(opsets)]
        self._asked = 0

    @property
    def done(self) -> bool:
        """Tell whether every question was asked."""
        return self._next[0] >= self._rounds and self._asked >= len(self._blocks)

    @property
    def fruitful(self) -> bool:
        """Tell whether the target took any program."""
        return any(answer.taken for answer in (*self._learnt, *self._answers))

    @property
    def simplest(self) -> Single | None:
        """A program of one common operator; None when there are no questions."""
        drafts = (_draft(triple, 0) for triple in self._commonest)
        return next((single for single in drafts if single is not None), None)

    def state(self) -> dict[str, Any]:
        """Return answers and place as JSON values."""
        told = [[a.key, a.detail, a.family, sorted(a.traits), a.taken] for a in self._answers]
        places = {"next": list(self._next), "found": self._found, "refused": self._refused}
        return {**places, "asked": self._asked, "answers": told}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Continue from the `state` of an earlier inquiry. Raises ValueError when its questions were different."""
        if len(state["found"]) != len(self._triples):
            raise ValueError("the state belongs to other questions")
        self._next, self._found = (state["next"][0], state["next"][1]), list(state["found"])
        self._refused = list(state["refused"])
        self._asked = int(state["asked"])
        self._answers = _answers_in(state)

    def learn(self, state: Mapping[str, Any]) -> None:
        """Take the answers of an inquiry in another order, which end no questions of this one."""
        self._learnt = _answers_in(state)

    def go_on(self, target: str, runner: Runner, watch: Watcher | None, seconds: float | None) -> Support:
        """Ask the remaining questions, for at most `seconds`; return the table of all answers."""
        end = math.inf if seconds is None else time.monotonic() + seconds
        total = sum(self._wanted)
        size = _BATCH if seconds is None else _FIRST  # a slow compiler shows in the first batch
        while not self.done and (now := time.monotonic()) < end:
            blocks = self._block_questions(size // 4 + (size > 1))
            self._answers += _ask_blocks(target, blocks, runner)
            drawn = self._questions(size)
            for place, answer in zip(drawn, _ask(target, list(drawn.values()), runner), strict=True):
                self._take(place, answer)
            size = _next_size(size, len(blocks) + len(drawn), time.monotonic() - now, end - time.monotonic())
            if watch:
                watch(min(sum(self._found), total), total)
        if watch and self.done:
            watch(total, total)
        return gather([*self._learnt, *self._answers])

    def _block_questions(self, size: int) -> list[Question]:
        """Return the next `size` questions about operators with bodies, without those that are answered already."""
        found: list[Question] = []
        if self._asked == len(self._blocks):
            return found
        refused = {answer.key for answer in self._answers if not answer.taken}
        while self._asked < len(self._blocks) and len(found) < size:
            question = self._blocks[self._asked]
            if not question.needs or question.needs - refused:
                found.append(question)
            self._asked += 1
        return found

    def _questions(self, size: int) -> dict[tuple[int, int], Single]:
        """Draw the next `size` questions or a few more, by the numbers of their drafts and places among the triples."""
        found: dict[tuple[int, int], Single] = {}
        number, place = self._next
        while number < self._rounds and len(found) < size:
            each = self._each[place]
            for draft in range(number * each, min((number + 1) * each, _DRAFTS * self._wanted[place])):
                single = _draft(self._triples[place], draft) if self._found[place] < self._wanted[place] else None
                if single is not None:
                    found[draft, place] = single
                    self._found[place] += 1
            number, place = (number, place + 1) if place + 1 < len(self._triples) else (number + 1, 0)
        self._next = (number, place)
        return found

    def _take(self, where: tuple[int, int], answer: SupportAnswer | None) -> None:
        """Record an answer; stop probing a rare element type after `_REFUSALS` refusals without an acceptance."""
        if answer is None:
            return
        self._answers.append(answer)
        place = where[1]
        if answer.taken:
            self._refused[place] = -self._wanted[place]
        else:
            self._refused[place] += 1
        if self._refused[place] >= _REFUSALS and self._triples[place][1] not in _COMMON:
            self._found[place] = self._wanted[place]


def _answers_in(state: Mapping[str, Any]) -> list[SupportAnswer]:
    return [
        SupportAnswer(key, detail, family, frozenset(traits), taken)
        for key, detail, family, traits, taken in state.get("answers", ())
    ]


def _next_size(size: int, asked: int, taken: float, left: float) -> int:
    """Return the size of the batch after one of `size`, whose `asked` questions took `taken` of the seconds.

    `left` are the seconds that remain. A batch is at most four times as large as the one before it, because the first
    questions may be cheaper than the others.
    """
    fitting = int(min(_BATCH_SECONDS, max(0.0, left)) * asked / max(taken, 1e-3))
    return max(1, min(_BATCH, 4 * size, fitting))


def _require_no_error(target: str, inquiry: Inquiry, runner: Runner) -> None:
    """Raise UsageError with the error of a target that raises one even for the simplest program: it is broken."""
    single = inquiry.simplest
    if single is None:
        return
    (outcome,) = runner.run([Run(single.case("probe"), target, Build("off"), "probe")])
    if isinstance(outcome, Raised | Defect):
        error = f"{outcome.kind}: {outcome.message}".partition("\n")[0]
        raise UsageError(f"target {target} took no program; it raises at {outcome.stage} of {single.call.op}: {error}")


def _triples(opsets: Sequence[int]) -> Iterator[Triple]:
    for op in specs():
        asked = set()
        for opset in sorted(opsets, reverse=True):
            form = schema(op, opset)
            for dtype in dtypes_of(op, opset):
                key = (dtype, form.since_version if form else opset)
                if key not in asked:
                    asked.add(key)
                    yield op, dtype, opset


def _samples(op: str, dtype: str, newest: bool) -> int:
    """Return the number of samples: fewer for rare types and earlier versions, because few details differ."""
    probes = specs()[op].probes
    if probes is not None:
        return probes if newest else probes // 2
    return _SAMPLES if newest and dtype in _COMMON else _SAMPLES // 2


def _rank(triple: Triple) -> int:
    return _COMMON.index(triple[1]) if triple[1] in _COMMON else len(_COMMON)


def _draft(triple: Triple, number: int) -> Single | None:
    op, dtype, opset = triple
    rng = stream(0, "probe", op, dtype, opset, number)
    style = Style(integral=number % 2 == 0, full=number % 4 < 2)
    try:
        return draft_single(
            rng, op, dtype, opset, OperatorLimits(max_dim=5, max_elements=256), style, Support(open=True)
        )
    except RejectedDraft:
        return None


def _ask(target: str, singles: list[Single], runner: Runner) -> Iterator[SupportAnswer | None]:
    """Yield an answer for each program; None for an error that is no refusal, because it does not decide support."""
    runs = [Run(single.case("probe"), target, Build("off"), "probe") for single in singles]
    for single, outcome in zip(singles, runner.run(runs), strict=True):
        opset, call, types = single.scope.opset, single.call, single.types
        if isinstance(outcome, Raised | Defect):
            yield None
            continue
        yield SupportAnswer(
            key_of(call, types, opset),
            detail_of(call, types, opset),
            family_of(call),
            frozenset(traits_of(call)),
            taken=not isinstance(outcome, Unsupported | Rejected | OutOfMemory),
        )


def _ask_blocks(target: str, asked: Sequence[Question], runner: Runner) -> Iterator[SupportAnswer]:
    runs = [Run(question.case, target, Build("off"), "probe") for question in asked]
    for question, outcome in zip(asked, runner.run(runs), strict=True):
        if not isinstance(outcome, Raised | Defect):
            refused = isinstance(outcome, Unsupported | Rejected | OutOfMemory)
            yield SupportAnswer(question.key, question.key, question.op, frozenset(), taken=not refused)


def _cache_path(target: str, versions: dict[str, str], opsets: Sequence[int], first: Collection[str] = ()) -> Path:
    words = [target, __version__, str(_FORMAT), *(f"{k}={v}" for k, v in sorted(versions.items())), *map(str, opsets)]
    names = sorted(f"{op}:{','.join(spec.dtypes)}" for op, spec in specs().items())
    refusals = known(parse_target(target).about.name).rejections  # the table depends on the rules for refusals
    words += [f"{entry.status}={entry.pattern.pattern}" for entry in refusals]
    words += [f"first={op}" for op in sorted(first)]
    return user_cache_path("miscompile") / "support" / f"{digest_words(*words, *names):016x}.json"


def _load(path: Path) -> dict[str, Any] | None:
    """Read a cached state; an absent or damaged file means probing again."""
    try:
        state: dict[str, Any] = json.loads(path.read_text("utf-8"))
        if "table" in state:
            support_from(state["table"])
        else:
            Inquiry(()).resume({**state, "found": [], "refused": []})
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return None
    return state


def _save(path: Path, state: dict[str, Any]) -> None:
    """Write the state; if the cache cannot be written, the next session probes again."""
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps(state), "utf-8")
        temporary.replace(path)
    except OSError:
        return

"""Recheck: the scripts of all findings of a campaign on another release of their compiler.

Each script runs in fresh processes. A finding is fixed when two runs in a row do not show it, because a bug that shows
only sometimes would else be closed.
"""

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, get_args

from miscompile.base.errors import StoreError
from miscompile.base.messages import normalise
from miscompile.engine.known_bugs import ENTERED, name_in_ledger, new_entry, release_under_test
from miscompile.engine.releases import announced, readable_script
from miscompile.environments.resolve import python_of
from miscompile.findings.folder import REPEATED, Stored
from miscompile.findings.ledger import Ledger
from miscompile.findings.ledger_entry import key_of, utc_now
from miscompile.findings.store import Store
from miscompile.targets.registry import parse_target
from miscompile.triage.confirm import ScriptResult, run_script
from miscompile.triage.signature import HEAP

Answer = Literal["fixed", "still there", "changed"]
ANSWERS: tuple[Answer, ...] = get_args(Answer)

_REASON = 300
_COMPARED = 200
"""Letters of two error messages that are compared; later ones may be cut off in one of them."""
_SIGNAL = re.compile(r"\bsignal (\d+)")


@dataclass(frozen=True, slots=True)
class Rechecked:
    """The answer for one finding. `regression`: the ledger has it as fixed in this release, or an older one."""

    identifier: str
    signature: str
    answer: Answer
    reason: str
    seconds: float
    regression: bool = False
    closed: bool = False
    """Whether its bug was closed in the ledger, as fixed in this release."""


@dataclass(frozen=True, slots=True)
class Recheck:
    """The answers for a campaign; `skipped` maps findings that were not run to the reasons."""

    target: str
    release: str
    answers: tuple[Rechecked, ...]
    skipped: Mapping[str, str]

    def count(self, answer: Answer) -> int:
        """Return the number of findings with this answer."""
        return sum(one.answer == answer for one in self.answers)

    def as_json(self) -> dict[str, Any]:
        """Return the answers as JSON values."""
        return {
            "target": self.target,
            "release": self.release,
            "counts": {name: self.count(name) for name in ANSWERS},
            "findings": [{"id": data.pop("identifier"), **data} for data in map(asdict, self.answers)],
            "skipped": dict(self.skipped),
        }


def recheck(
    out: Path, target: str, workers: int, seconds: float, done: Callable[[Rechecked, int, int], None]
) -> tuple[Recheck, dict[str, Stored]]:
    """Run the scripts of the campaign in `out` on the release of the target spec `target`, which must be installed.

    `workers` scripts run at a time, each for at most `seconds`; `done` gets each answer, their number and that of all
    findings, from this thread. Returns the answers and the findings by identifier. Raises StoreError without a
    campaign, UsageError without the compiler.
    """
    chosen, skipped = _chosen(out, target)
    release, python = release_under_test(target), python_of(target)
    closing = threading.Event()
    answers = []

    with TemporaryDirectory(prefix="miscompile-") as place, ThreadPoolExecutor(workers) as pool:

        def run(stored: Stored) -> Rechecked | None:
            if closing.is_set():
                return None
            path = Path(place) / f"{stored.finding.identifier}.py"
            path.write_text(readable_script(stored.script, target), "utf-8")
            result = run_script(path, python, seconds)
            if result.status == "absent":
                result = run_script(path, python, seconds)
            return _answer(stored, result)

        try:
            for answer in pool.map(run, chosen.values()):
                if answer is not None:
                    answers.append(answer)
                    done(answer, len(answers), len(chosen))
        except BaseException:
            closing.set()
            raise
    return Recheck(target, release, tuple(answers), skipped), chosen


def entered(found: Recheck, stored: Mapping[str, Stored], store: Store, ledger: Ledger, *, close: bool) -> Recheck:
    """Update the ledger with the answers: the last release seen, and with `close` the state fixed-in.

    Findings that the ledger lacks are entered. Returns the answers with what the ledger says about them.
    """
    campaign = name_in_ledger(store.campaign())
    answers = [_entered(one, stored[one.identifier], found.release, campaign, ledger, close=close)
               for one in found.answers]  # fmt: skip
    return Recheck(found.target, found.release, tuple(answers), found.skipped)


def _entered(one: Rechecked, stored: Stored, release: str, campaign: str, ledger: Ledger, *, close: bool) -> Rechecked:
    values = {name: getattr(one, name) for name in ("identifier", "signature", "answer", "reason", "seconds")}
    with ledger.changing():
        entry = ledger.get(str(stored.finding.facts.get(ENTERED, one.signature)))
        if entry is None:
            entry = new_entry(stored, campaign)
            ledger.put(entry)
        root = ledger.root(entry)
        if one.answer == "still there":
            regression = not root.absorbs(release)
            ledger.sight(dict.fromkeys({entry.key, root.key}, 0), release)
            if regression:
                ledger.change(
                    root.key, lambda held: held.regressed(release, campaign, stored.finding.identifier, utc_now())
                )
            return Rechecked(**values, regression=regression)
        closed = close and one.answer == "fixed" and root.state in ("open", "reported")
        if closed:
            ledger.change(root.key, lambda held: held.closed("fixed-in", "", utc_now(), release))
        return Rechecked(**values, closed=closed)


def _chosen(out: Path, target: str) -> tuple[dict[str, Stored], dict[str, str]]:
    """Return the findings whose scripts can run on `target`, and the reasons why others cannot."""
    spec = parse_target(target)
    chosen: dict[str, Stored] = {}
    skipped = {}
    with Store.open(out, create=False) as store:
        records = store.findings()
        for record in records:
            if record.status not in REPEATED | {"fixed"}:
                skipped[record.identifier] = f"it is {record.status}"
                continue
            try:
                stored = store.load(record.identifier)
            except StoreError as error:
                skipped[record.identifier] = str(error)
                continue
            own = parse_target(stored.finding.property.target)
            if (own.about.name, own.via) != (spec.about.name, spec.via):
                skipped[record.identifier] = f"it is of {stored.finding.property.target}"
            elif not stored.script:
                skipped[record.identifier] = "it has no script; `miscompile reduce` writes one"
            else:
                chosen[record.identifier] = stored
    return chosen, skipped


def _answer(stored: Stored, result: ScriptResult) -> Rechecked:
    answer, reason = _judged(stored, result)
    signature = key_of(stored.finding.property.signature)
    return Rechecked(stored.finding.identifier, signature, answer, reason[:_REASON], round(result.seconds, 3))


def _judged(stored: Stored, result: ScriptResult) -> tuple[Answer, str]:
    """Return the answer that a script's result gives, and the reason why a finding is changed."""
    if result.status == "absent":
        return "fixed", ""
    if result.status == "broken":
        said = (result.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        if result.code is not None and result.code < 0:
            return "changed", f"it dies of signal {-result.code}: {said}"
        end = f"no end within {result.seconds:.0f} s" if result.code is None else f"status {result.code}"
        return "changed", f"the script cannot run: {end}: {said}"
    signature = stored.finding.property.signature
    if signature.kind == "exception":
        error = announced(result.stdout)
        if not _same_error(stored.finding.message, error):
            return "changed", f"it raises another error: {error}"
    if signature.kind == "death" and result.code is not None and not _same_death(stored, result.code):
        return "changed", f"it dies in another way, with status {result.code}"
    return "still there", ""


def _same_error(message: str, error: str) -> bool:
    """Compare a finding's message, `Kind at stage: text`, with the error that its script announces, `Kind: text`."""
    before, now = (normalise(text.partition(": ")[2])[:_COMPARED] for text in (message, error))
    size = min(len(before), len(now))
    return before[:size] == now[:size] if size else before == now


def _same_death(stored: Stored, code: int) -> bool:
    """Compare the signal of a finding with that of its script; a corrupted heap ends in any signal."""
    texts = (stored.finding.property.signature.text, stored.finding.message, _symptom(stored))
    signal = next((found[1] for found in map(_SIGNAL.search, texts) if found), None)
    return signal is None or HEAP in "".join(texts) or int(signal) == -code


def _symptom(stored: Stored) -> str:
    predicate = stored.finding.facts.get("predicate")
    return str(predicate.get("message", "")) if isinstance(predicate, Mapping) else ""


def worst_first(answers: Sequence[Rechecked]) -> list[Rechecked]:
    """Return the answers as people read them: still there, changed, fixed."""
    ranks: dict[Answer, int] = {"still there": 0, "changed": 1, "fixed": 2}
    return sorted(answers, key=lambda one: (ranks[one.answer], one.signature))

"""Search for the first release of a compiler that shows a finding: a binary search with the finding's script.

The search assumes that a release shows the bug if an older one does, up to the one that it was found in. It also
assumes that the releases that cannot run the script, because its operators are too new for them, are the oldest ones.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from miscompile.base.errors import UsageError
from miscompile.base.messages import normalise
from miscompile.base.versions import order, same_version
from miscompile.core.events import ProgressListener
from miscompile.core.verdict import FindingKind
from miscompile.environments import cache, pip
from miscompile.environments.interpreters import choose
from miscompile.environments.resolve import prepare, python_of
from miscompile.targets.known import known
from miscompile.targets.registry import compiler_of, parse_target, with_version
from miscompile.triage.confirm import ScriptResult, run_script
from miscompile.triage.script import SHOWS

SECONDS = 300.0
"""Seconds that the script may take in one release."""

_REASON = 200
_RAISES = " raises "
_IR = re.compile(r"\b(ir_version=)(\d+)\b")
_OPSET = re.compile(r"\b(make_opsetid\((?:\"\"|\"ai\.onnx\"), )(\d+)\b")


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of one release: the bug `shows` or is `absent`, the script raises another error (`other`), or the
    release is `skipped`; the last two have a `reason`, and say nothing about the bug.

    `opset` is the version of ONNX's operators to which the script was lowered, because the release does not read the
    finding's; 0 if it was not.
    """

    release: str
    answer: Literal["shows", "absent", "other", "skipped"]
    reason: str = ""
    opset: int = 0


@dataclass(frozen=True, slots=True)
class History:
    """The result of a search. `last_good` is None when no older release gave an answer, or the oldest shows the bug.

    `trials` are in the order of the releases; `newest` is the result of the newest release.
    """

    distribution: str
    first_bad: str
    last_good: str | None
    newest: Trial
    trials: tuple[Trial, ...]

    @property
    def skipped(self) -> tuple[Trial, ...]:
        """The releases that gave no answer."""
        return tuple(trial for trial in self.trials if trial.answer == "skipped")

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "distribution": self.distribution,
            "first_bad": self.first_bad,
            "last_good": self.last_good,
            "newest": asdict(self.newest),
            "skipped": [trial.release for trial in self.skipped],
            "tried": [asdict(trial) for trial in self.trials],
        }


TryRelease = Callable[[str], Trial]
"""Runs the script in one release; called at most once for each."""


def search(distribution: str, releases: Sequence[str], found_in: str, ask: TryRelease) -> History:
    """Find the first of `releases` (the oldest first) that shows the bug that was found in release `found_in`.

    Both ends are tried first, the newest release last. Raises UsageError when `found_in` does not show it.
    """
    known_trials: dict[str, Trial] = {}

    def look(release: str) -> Trial:
        if release not in known_trials:
            known_trials[release] = ask(release)
        return known_trials[release]

    found_in = next((release for release in releases if same_version(found_in, release)), found_in)
    older = [release for release in releases if order(release) < order(found_in)]
    last = look(found_in)
    if last.answer != "shows":
        raise UsageError(f"the bug does not show in {distribution} {found_in}, where it was found: {last.reason}")
    first_bad, last_good = _narrow([*older, found_in], look)
    newest = look(max([*releases, found_in], key=order))
    trials = tuple(sorted(known_trials.values(), key=lambda trial: order(trial.release)))
    return History(distribution, first_bad, last_good, newest, trials)


def _narrow(releases: Sequence[str], look: TryRelease) -> tuple[str, str | None]:
    """Return the first bad and the last good release; the last of `releases` is bad."""
    low, high = 0, len(releases) - 1
    first = look(releases[low]).answer
    if first == "shows":
        return releases[low], None
    good = first == "absent"
    while high - low > 1:
        place = _answering(releases, low, high, look) if good else (low + high) // 2
        if place is None:
            break
        answer = look(releases[place]).answer
        if answer == "shows":
            high = place
        else:
            low, good = place, good or answer == "absent"
    return releases[high], releases[low] if good else None


def _answering(releases: Sequence[str], low: int, high: int, look: TryRelease) -> int | None:
    """Return the place between `low` and `high`, the middle first, whose release gives an answer; None without one."""
    middle = (low + high) // 2
    for place in sorted(range(low + 1, high), key=lambda place: abs(place - middle)):
        if look(releases[place]).answer in ("shows", "absent"):
            return place
    return None


@dataclass(slots=True)
class Judge:
    """Runs a finding's script in environments with releases of its target; removes the new ones unless `keep`.

    `opsets` are versions of ONNX's operators with which the bug is known to show.
    """

    target: str
    kind: FindingKind
    script: str
    folder: Path
    keep: bool
    on_progress: ProgressListener
    opsets: tuple[int, ...] = ()
    wanted: str | None = None
    """The masked error message in the first release; a release with another message has another bug."""

    def ask(self, release: str) -> Trial:
        """Try one release."""
        text = with_version(self.target, release)
        name = parse_target(text).about.name
        there = cache.find(name, release) is not None
        try:
            prepare(text, self.on_progress)
            script = readable_script(self.script, text, self.opsets)
            result = run_script(self._written(script), python_of(text), SECONDS)
        except UsageError as error:
            trial = Trial(release, "skipped", str(error)[:_REASON])
        else:
            own, lowered = opset_of(self.script), opset_of(script)
            trial = replace(self.judge(release, result), opset=lowered if lowered < own else 0)
        finally:
            if not (there or self.keep):
                made = cache.find(name, release)
                if made is not None:
                    cache.remove(made.name, self.on_progress)
        self.on_progress(f"{name} {release}: {trial.answer}" + (f" ({trial.reason})" if trial.reason else ""))
        return trial

    def _written(self, script: str) -> Path:
        path = self.folder / "repro.py"
        path.write_text(script, "utf-8")
        return path

    def judge(self, release: str, result: ScriptResult) -> Trial:
        """Return the result of a release from that of its script."""
        if result.status == "broken":
            said = (result.stderr.strip().splitlines() or ["it printed nothing"])[-1]
            end = f"no end within {SECONDS:g} s" if result.code is None else f"status {result.code}"
            return Trial(release, "skipped", f"the script cannot run: {end}: {said}"[:_REASON])
        if result.status == "absent":
            return Trial(release, "absent")
        if self.kind != "exception":
            return Trial(release, "shows")
        error = announced(result.stdout)
        if self.wanted is None:
            self.wanted = normalise(error)
        if normalise(error) == self.wanted:
            return Trial(release, "shows")  # even if it looks like a refusal: another build takes this program
        kind, _, message = error.partition(": ")
        if known(parse_target(self.target).about.name).rejection(kind, message) is not None:
            return Trial(release, "skipped", f"it refuses the program: {error}"[:_REASON])
        return Trial(release, "other", f"it raises another error: {error}"[:_REASON])


def readable_script(script: str, target: str, opsets: Sequence[int] = ()) -> str:
    """Return a script with the newest IR version that the release of the target spec `target` reads.

    An old release refuses a newer number even if the model needs nothing of that version. `opsets` are versions of
    ONNX's operators with which the bug is known to show. A release that does not read the script's gets the oldest of
    them, because what a release says it reads is not always what it runs.
    """
    about = parse_target(target).about
    readable = _IR.sub(lambda found: f"{found[1]}{min(int(found[2]), about.max_ir_version)}", script)
    if opset_of(script) <= about.max_opset or not opsets:
        return readable
    return _OPSET.sub(lambda found: f"{found[1]}{min(*opsets, int(found[2]))}", readable)


def opset_of(script: str) -> int:
    """Return the version of ONNX's operators that a script imports; 0 for one without a model."""
    return max((int(found[2]) for found in _OPSET.finditer(script)), default=0)


def announced(stdout: str) -> str:
    """Return the error that a script has printed, in one line."""
    start = stdout.find(SHOWS)
    return " ".join(stdout[start:].partition(_RAISES)[2].split())


def first_release(
    target: str,
    found_in: str,
    kind: FindingKind,
    script: str,
    *,
    opsets: tuple[int, ...] = (),
    keep: bool,
    on_progress: ProgressListener,
) -> History:
    """Find the first release of a target's compiler in which `script` shows its bug, making environments on the way.

    `found_in` is the version that the bug was found in, `opsets` are versions of ONNX's operators with which it is
    known to show. Raises UsageError when the target has no releases, pip cannot list them, or the bug does not show
    where it was found.
    """
    compiler = compiler_of(parse_target(target).about)
    if compiler is None:
        raise UsageError(f"target {target} is a part of this tool and has no releases")
    releases = pip.releases(compiler, choose("", target))
    with TemporaryDirectory(prefix="miscompile-") as place:
        judge = Judge(target, kind, script, Path(place), keep, on_progress, opsets)
        return search(compiler, releases, found_in, judge.ask)

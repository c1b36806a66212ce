"""Signatures: the identity of bugs.

A *symptom* is the result of one examination (kind, stage, message); a *signature* adds the results of triage (the
guilty passes, or the canonical form of the reduced graph). Reduction and bisection must keep the symptom; another
symptom on the way is a slippage, and becomes a finding of its own.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from signal import SIGABRT

from miscompile.base.messages import normalise
from miscompile.core.finding import Signature
from miscompile.core.outcome import (
    Crashed,
    Defect,
    Outcome,
    OutOfMemory,
    Raised,
    Rejected,
    TimedOut,
    Unsupported,
    Values,
)
from miscompile.core.run import Build
from miscompile.core.verdict import Evidence, FindingKind
from miscompile.graph.fingerprint import fingerprint
from miscompile.graph.model import Model
from miscompile.oracles import memory
from miscompile.targets.derivatives import WORDS
from miscompile.targets.registry import parse_target

_READ = 4000
_CHAIN = 8
_FRAMES = 3

_FRAME = re.compile(
    r"^\s*(?:#\d+\s+(?:0x[0-9a-f]+\s+)?(?:in\s+)?(?P<numbered>[A-Za-z_~][^(+\n]*)"  # sanitizer, gdb
    r"|\d+:\s+(?P<listed>[A-Za-z_][^(+\n]*::[^(+\n]*)"  # compilers that print their own backtrace
    r"|[^\s()]+\((?P<glibc>[A-Za-z_][^()+]*)\+0x[0-9a-f]+\)"  # glibc's backtrace
    r'|File "[^"]*", line \d+ in (?P<python>\w+))',  # faulthandler
    re.MULTILINE,
)
_DYING_WORDS = re.compile(
    r"^.*(?:check failed|assertion .*failed|LLVM ERROR|terminate called|what\(\):|free\(\)|double free|malloc|corrupt"
    r"|Sanitizer|UNREACHABLE|stack smashing|pure virtual).*$",
    re.MULTILINE | re.IGNORECASE,
)


_HEAP = re.compile(
    r"free\(\)|double free|malloc|munmap_chunk|realloc\(\)|corrupted (?:size|top|unsorted|double-linked)|unsorted chunk"
)
"""Messages of the allocator about a corrupted heap. They differ at random, because the corruption is found later."""

HEAP = "heap corruption"

_PANIC = re.compile(
    r"panicked at (?:\S*/(?:registry/src/[^/\s]+|rustc/[0-9a-f]+)/)?(?P<file>[^:\s]+):\d+:\d+:\n(?P<words>[^\n]*)"
)
"""A panic of Rust. Its line is left out of signatures because it changes from release to release."""

_CRATE = re.compile(r"(?:-\d+(?:\.\d+)+[^/]*)?/src/")
"""What stands between a Rust package and its modules in the path of a file: the release, and a folder."""

_REDUCTION = re.compile(r"^Reduce[A-Z]\w*$")
"""The reductions share one implementation of their output shape in most compilers, so they count as one operator."""


@dataclass(frozen=True, slots=True)
class Symptom:
    """A bug as one examination shows it: kind, stage of the failure, masked message.

    The stage of wrong results is empty, that of results on special values their class (`nan`, `zero-sign`, ...), that
    of cost what costs too much (`compile time`, `growth`, ...). In a violation of memory safety the stage is the class
    (`read behind`, ...) and the text the role of the tensor.
    """

    kind: FindingKind
    stage: str
    text: str


def placeless(message: str, target: str) -> str:
    """Remove from an error message of `target` where in the program the error is (`About.masks`)."""
    text = message[:_READ]
    for pattern, mask in parse_target(target).about.masks:
        text = re.sub(pattern, mask, text)
    return text


def frames_of(stderr: str, limit: int = _FRAMES) -> tuple[str, ...]:
    """Return the innermost function names of the first backtrace in `stderr`, without arguments and offsets."""
    found = []
    for match in _FRAME.finditer(stderr):
        name = next(group for group in match.groups() if group)
        if name.strip() not in found:
            found.append(name.strip())
        if len(found) == limit:
            break
    return tuple(found)


def symptom_of(evidence: Evidence, outcome: Outcome | None) -> Symptom:
    """Return the symptom of `evidence`; `outcome` is that of its faulty run."""
    target = evidence.faulty.target
    if evidence.rule == memory.RULE:
        return Symptom(evidence.kind, str(evidence.details["memory"]), str(evidence.details["role"]))
    match outcome:
        case None | Values():
            return Symptom(evidence.kind, str(evidence.details.get("special", evidence.details.get("cost", ""))), "")
        case Raised(stage, kind, message) | Defect(stage, kind, message):
            return Symptom(evidence.kind, stage, normalise(placeless(f"{kind}: {message}", target)))
        case Rejected(stage, message) | Unsupported(stage, message) | OutOfMemory(stage, message):
            return Symptom(evidence.kind, stage, normalise(placeless(message, target)))
        case Crashed(stage, signal, observations):
            return Symptom(evidence.kind, stage, _death(signal, observations.stderr))
        case TimedOut(stage):
            return Symptom(evidence.kind, stage, "")


def telling(symptom: Symptom) -> bool:
    """Tell whether the symptom alone says much about the bug: it has a message, or a death has a backtrace."""
    return " in " in symptom.text if symptom.kind == "death" else bool(symptom.text)


def similar(a: Symptom, b: Symptom) -> bool:
    """Tell whether two symptoms may come of one bug: same kind and stage, and messages that agree.

    A death without a backtrace agrees with every death of the same signal. A corrupted heap kills the process at any
    time and with different messages, or with a segmentation fault.
    """
    if a.kind == b.kind == "death" and HEAP in a.text + b.text:
        return all(HEAP in one.text or one.text.startswith("signal 11") for one in (a, b))
    if (a.kind, a.stage) != (b.kind, b.stage):
        return False
    if a.text == b.text:
        return True
    if a.kind != "death":
        return False
    (signal, _, left), (other, _, right) = a.text.partition(" in "), b.text.partition(" in ")
    return signal == other and (not left or not right or left.split(" < ")[0] == right.split(" < ")[0])


def signature_of(
    evidence: Evidence, outcome: Outcome | None, culprits: Sequence[str] = (), model: Model | None = None
) -> Signature:
    """Return the signature of a violation: guilty passes if known, the message of an error, else the form of the graph.

    `outcome` is that of the faulty run, `model` the (reduced) graph. The graph's form is its operator chain
    and its fingerprint without values and sizes; where an output contradicts its declared type, it is the operator
    that makes the output; where the program is invalid on purpose, the operator and the kind of constraint broken.
    """
    symptom = symptom_of(evidence, outcome)
    target = parse_target(evidence.faulty.target).release
    guilty = blamed(culprits, evidence.faulty.build)
    # Another message of the same passes may be another bug. A reader can unite findings, but not divide one.
    text = symptom.text if evidence.kind == "exception" else ""
    if not guilty:
        text = symptom.text or (_form(evidence, model) if model is not None else "")
    if evidence.rule == memory.RULE:
        text = (
            ""
            if guilty
            else " of ".join(filter(None, (symptom.text, (_chain(model) or "no operator") if model else "")))
        )
    elif evidence.kind == "death" and not guilty and model is not None:
        text = f"{text} of {_chain(model)}"  # a signal alone does not identify the kernel
    elif evidence.kind == "refused-form":
        text = symptom.text  # several operators may be refused for one reason
        for name in {node.op for node in model.graph.nodes} if model is not None else ():
            text = re.sub(rf"\b{re.escape(normalise(name))}\b", "<operator>", text)
    setting = "" if evidence.rule in (memory.RULE, "forms") else setting_of(evidence)
    if setting and not guilty:
        text = f"{setting}: {text}"
    return Signature(target, evidence.kind, symptom.stage, guilty, text)


def blamed(culprits: Sequence[str], build: Build) -> tuple[str, ...]:
    """Return the passes that must be on and the sequence of passes in the faulty build, sorted.

    A sequence of one pass that is a culprit itself is left out, because the pass fails in its usual place as well.
    """
    ordered = build.sequence if not (len(build.sequence) == 1 and build.sequence[0] in culprits) else ()
    return tuple(sorted([*culprits, *([" > ".join(ordered)] if ordered else [])]))


def setting_of(evidence: Evidence) -> str:
    """Return the differences of the builds besides their passes: the transform of the program, the device."""
    builds = [run.build for run in (evidence.reference, evidence.faulty) if run is not None]
    transforms = {build.transform.name for build in builds if build.transform}
    devices = {build.device for build in builds}
    return " ".join(
        [*(f"as {name}" for name in sorted(transforms)), *(f"on {name}" for name in sorted(devices - {"cpu"}))]
    )


def operator_class(op: str) -> str:
    """Return the name that stands for `op` in signatures: `Reduce` for all reductions, else the operator's own."""
    return _REDUCTION.sub("Reduce", op)


def canonical_form(model: Model) -> str:
    """Return `Op>Op>Op:fingerprint`, the canonical form of a graph without values and sizes."""
    return f"{_chain(model)}:{fingerprint(model, values=False, shapes=False)}"


def _chain(model: Model) -> str:
    operators = [node.op for node in model.graph.nodes]
    return ">".join(operators[:_CHAIN]) + (">.." if len(operators) > _CHAIN else "")


def _form(evidence: Evidence, model: Model) -> str:
    if evidence.rule == "declared":
        if evidence.output.startswith(WORDS):
            return canonical_form(model)  # a derivative, which no node of the program makes
        makers = [node.op for node in model.graph.nodes if evidence.output in node.outputs]
        if not makers:
            return "a constant" if evidence.output in model.graph.initializers else "an input"
        return operator_class(makers[0])
    if evidence.rule == "invalid":
        return f"{_chain(model)} with broken {evidence.details.get('broken', 'constraint')}"
    return canonical_form(model)


def _death(signal: int, stderr: str) -> str:
    """`signal 11: last words in frame < frame`; only the signal is always there.

    For a panic of Rust the source file stands for the frames, because those of Python are all that the text has.
    """
    panics = list(_PANIC.finditer(stderr)) if signal == SIGABRT else []
    if panics:  # earlier ones were caught
        place = _CRATE.sub("/", panics[-1]["file"])
        return f"signal {signal}: {normalise(panics[-1]['words'])} in {place}"
    words = _DYING_WORDS.search(stderr)
    if words and _HEAP.search(words[0]):
        return f"signal {signal}: {HEAP}"
    cause = f": {normalise(words[0])}" if words else ""
    frames = [normalise(frame) for frame in frames_of(stderr)]
    return f"signal {signal}{cause}" + (f" in {' < '.join(frames)}" if frames else "")

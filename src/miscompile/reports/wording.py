"""Titles and first sentences of issues: what a user of the compiler sees, in the words of the target's project."""

import re
import signal
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from miscompile.base.errors import MiscompileError
from miscompile.core.verdict import FindingKind
from miscompile.findings.folder import Stored
from miscompile.graph.read import read
from miscompile.oracles import memory
from miscompile.reports.forms import IssueForm, form_of

_FEW = 4
"""Operators that a title names; a longer program is called by its size."""

_LONGEST = 110
"""Characters of an error message in a title."""

_NOISE = re.compile(
    r"^\w+ at \w+: |^refused at \w+ by this build only: |\[ONNXRuntimeError\] : \d+ : \w+ : |\[/?\w*Error\] "
    r"|^Non-zero status code returned while |Name:'[^']*' Status Message: |^Exception from \S+:\d+: ?"
    r"|^Check '[^']*' failed at |^Exception during initialization: |^Load model from \S+ failed: ?"
    r"|^This is an invalid model\. |^\w+\.cpp:\d+: FrontEnd API failed with "
    r"|(?<=node\. )Non-zero status code returned while "
)
"""What stands in front of the telling part of a message: our own words, codes and categories."""

_OURS = re.compile(r"^(?:(?P<kind>\w+) at (?:compile|run|load): |refused at \w+(?: by this build only)?: )")
"""What the judgement of a run puts in front of an error message."""

_PLACE = re.compile(
    r"[\w./+-]+\.(?:cc|cpp|h|hpp):\d+ (?:(?:[\w:<>*&~ ]*[: ])?[\w<>~]+\([^()]*\)(?: const)?(?: \[with [^\]]*\])?|\w+) "
    r"(?:.{1,200}? was false\. (?=\S))?"
)
"""A C++ source line with its function, as an assertion prints them, and the condition if a sentence follows it."""

_PATH = re.compile(r"(?:[\w.+-]*/)+")

_EFFECT: Mapping[FindingKind, str] = {
    "wrong": "wrong result",
    "special": "wrong result on special values",
    "cost": "out of proportion",
    "missing": "an output is missing",
    "shape": "output of another shape",
    "dtype": "output of another element type",
    "exception": "error on a valid model",
    "death": "crash",
    "hang": "hang",
    "memory": "unbounded memory",
    "accepted": "an invalid model is compiled and run",
    "refused-form": "a form of the call is refused",
}


_ACCESSES = {
    "read behind": "reads behind the end of an",
    "write behind": "writes behind the end of an",
    "read before": "reads before the beginning of an",
    "write before": "writes before the beginning of an",
    "write into": "writes into an",
    "uninitialised": "depends on memory that nobody has written in an",
}
"""What a class of violations of memory safety does, before the role of the tensor."""


def _of_memory(facts: Mapping[str, Any]) -> str:
    """Return what a violation of memory safety is, as a predicate: `reads behind the end of an input`."""
    details = facts.get("details", {})
    kind = details.get("memory", "")
    if kind in _ACCESSES:
        return f"{_ACCESSES[kind]} {details.get('role', 'output')}"
    return "corrupts the heap" if kind == "heap" else "dies when its memory is the caller's"


def title_of(stored: Stored) -> str:
    """Return the issue's title, one line: the culprit or the operators, and what goes wrong with them."""
    signature, facts = stored.finding.property.signature, stored.finding.facts
    operators = _operators(stored)
    who = " + ".join(signature.culprits) or _called(operators)
    effect = _EFFECT[signature.kind]
    if facts.get("rule") == memory.RULE:
        effect = _of_memory(facts)
    elif signature.kind == "exception":
        effect = f"{effect}: {_telling(stored.finding.message)}"
    elif signature.kind == "death":
        effect = f"{effect} at {signature.stage}" if signature.stage else effect
        effect = effect if signature.culprits or not signature.text else f"{effect}: {signature.text[:80]}"
    elif signature.kind == "cost":
        effect = f"{signature.stage} {effect}"
    elif signature.kind == "refused-form":
        effect = f"{effect}: {_telling(stored.finding.message)}"
    title = f"{who}: {effect}" if who else effect
    if signature.culprits and operators and signature.kind != "exception":
        title = f"{title} for {_called(operators)}"
    again = "regression: " if facts.get("regression") else ""
    form = form_of(signature.target)
    return " ".join(form.title.format(title=f"{again}{title}", target=signature.target).split())


def summary_of(stored: Stored, form: IssueForm) -> str:
    """Return what a user of the compiler sees, in a sentence or two."""
    facts, kind = stored.finding.facts, stored.finding.property.signature.kind
    output = f" `{facts['output']}`" if facts.get("output") else ""
    stage = {"compile": form.compile, "run": form.run}.get(stored.finding.property.signature.stage, "")
    at = f" in {stage}" if stage else ""
    sound = _sound(facts)
    if facts.get("rule") == memory.RULE:
        return f"Memory: a run of a valid model {_of_memory(facts)}."
    match kind:
        case "wrong":
            return f"Output{output} of a valid model has wrong values. {sound}".strip()
        case "special":
            wrong = f"Output{output} of a valid model is wrong where an operand is special."
            return f"{wrong} {_stated(facts)} {sound}".strip()
        case "missing":
            return f"A valid model loses its output{output}: {form.missing}. {sound}".strip()
        case "shape" | "dtype":
            what = "shape" if kind == "shape" else "element type"
            return f"Output{output} of a valid model has another {what} than ONNX defines. {sound}".strip()
        case "exception":
            return f"A valid model raises an error{at}. {sound}".strip()
        case "death":
            return f"The process dies{_of_signal(stored.finding.message)}{at}. {sound}".strip()
        case "hang":
            return f"There is no end{at} within the time limit. {sound}".strip()
        case "memory":
            return f"Memory grows to the limit{at}. {sound}".strip()
        case "accepted":
            return "An invalid model is compiled and run to values, where an error is expected."
        case "refused-form":
            named = ", or with ".join(facts.get("details", {}).get("forms", ())[:_MOST_FORMS])
            forms = named or "other parameters"
            return f"A valid call is refused{at}. The same operator with the same element types is taken with {forms}."
        case "cost":
            return _COSTS.get(stored.finding.property.signature.stage, "A valid model costs too much.")


_MOST_FORMS = 4
"""Forms that a summary names at most."""

_COSTS: Mapping[str, str] = {
    "compile time": "Optimising a valid model takes far more CPU time than building it without optimisation, and the "
    "more the larger the model is.",
    "growth": "The CPU time of optimising a model grows faster than with the square of its size.",
    "compile memory": "Optimising a valid model takes far more memory than a build without optimisation and its run.",
    "run time": "The optimised model takes far more CPU time to run than the unoptimised one on the same inputs.",
}
"""What a user sees of a cost, by its class."""


_CLASSES: Mapping[str, str] = {
    "nan": "NaN stands where a number is right, or the reverse",
    "infinity": "an infinity stands where another number is right, or the reverse",
    "underflow": "zero stands where another number is right, or the reverse",
    "zero-sign": "the sign of a zero is wrong",
    "range": "an inner result that leaves its type's range is forgotten",
    "number": "a number is wrong by more than a hundredth",
    "integer": "an integer or a truth value is wrong",
}
"""What a class of wrong results on special values means."""


def _stated(facts: Mapping[str, Any]) -> str:
    """Return the class of a wrong result on special values, and what the compiler's developers say about it."""
    details = facts.get("details", {})
    policy = details.get("policy", {})
    text = f"{_CLASSES.get(details.get('special', ''), 'it is wrong')}.".capitalize().replace("Nan", "NaN")
    if policy.get("status") == "accepted":
        return f"{text} The developers have accepted such a report before: {policy['link']}."
    return text


def as_raised(message: str) -> str:
    """Return a message as a user sees it, without our own words on where it was raised and by which build."""
    return _OURS.sub(lambda found: f"{found['kind']}: " if found["kind"] else "", message)


def changed_operators(rewriting: Mapping[str, Any]) -> str:
    """Return what passes did to a program, as the end of a sentence: `replaces Div, Mul by Div`."""
    removed, added = (_counted(rewriting[key]) for key in ("removed", "added"))
    if removed and added:
        return f"replaces {removed} by {added}"
    if removed:
        return f"removes {removed}"
    return f"adds {added}" if added else "changes operands or attributes, and no operator"


def _sound(facts: Mapping[str, Any]) -> str:
    """Return a sentence on the build that is right, if a build of the same target is."""
    reference, faulty = facts.get("reference"), facts.get("faulty")
    if not reference or not faulty:
        return ""
    if facts.get("against"):
        return f"{facts['against']} at level `{reference['level']}` computes it as ONNX defines it."
    if reference["level"] == faulty["level"] and reference["disabled"] == faulty["disabled"]:
        return ""
    return f"At optimisation level `{reference['level']}` it works, at `{faulty['level']}` it does not."


def _of_signal(message: str) -> str:
    found = re.search(r"signal (\d+)", message)
    if found is None:
        return ""
    number = int(found[1])
    name = signal.Signals(number).name if number in set(signal.Signals) else ""
    return f" of signal {number}{f' ({name})' if name else ''}"


def _operators(stored: Stored) -> list[str]:
    """Return the operators of the finding's program in order; none for a program that is no ONNX model."""
    if stored.finding.case.program.kind != "onnx":
        return []
    try:
        return [node.op for node in read(stored.finding.case.program.payload).graph.nodes]
    except MiscompileError:
        return []


def _called(operators: Sequence[str]) -> str:
    if len(operators) > _FEW:
        return f"a graph of {len(operators)} operators"
    return ", ".join(operators)


def _telling(message: str) -> str:
    """Return the telling part of an error message, without codes and paths."""
    line = " ".join(message.split())
    previous = ""
    while line != previous:
        previous, line = line, _PLACE.sub("", _NOISE.sub("", line))
    line = _PATH.sub("", line)
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST].rstrip()}..."


def _counted(operators: Sequence[str]) -> str:
    numbers = Counter(operators)
    return ", ".join(f"{number} x `{name}`" if number > 1 else f"`{name}`" for name, number in numbers.items())

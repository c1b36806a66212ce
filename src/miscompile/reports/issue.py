"""The issue text of a stored finding, in the order in which a maintainer reads it.

Optional facts that it shows (all JSON): `rule`, `output`, `faulty`, `reference`, `details` (written by
`miscompile.findings.encode.evidence_facts`); `nodes`, `original_nodes`; `test`, the index of the test that found it;
`attribution`, a sentence on how the culprits were found; `environment`, further names and versions; `reproduced`;
`regression`, an object with `fixed_in`, `release` and `link`; `evidence`, a mapping of further measurements;
`found_as`, the form of the program in which the bug was found; `needs`, the names of options of the compiler that the
bug needs;
`resisted`, an object with `class`, `edges` and `healing`; `referee`, an object with `message`; `known`, an object with
`link` and `note`.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import jinja2

from miscompile.core.verdict import FindingKind
from miscompile.findings.folder import Stored

MESSAGE_LIMIT = 4_000
MODEL_LIMIT = 20_000
SCRIPT_LIMIT = 35_000
"""Greatest number of characters in a block; trackers accept 65,536 in a text."""
MOST_NODES = 12
"""Operators of a real model that an issue names."""

LINE_LIMIT = 300
"""Characters of a line of the model: the elements of large constants do not help a reader."""

_NOUN: dict[FindingKind, str] = {
    "wrong": "wrong result",
    "missing": "missing output",
    "shape": "output of another shape",
    "dtype": "output of another type",
    "exception": "error on a valid model",
    "death": "crash",
    "hang": "hang",
    "memory": "unbounded memory",
    "accepted": "invalid model accepted",
}
_EXPECTED: dict[FindingKind, str] = {
    "wrong": "both builds of one model compute the same values",
    "missing": "every output of the model is delivered",
    "shape": "every build delivers outputs of the shape that ONNX infers",
    "dtype": "every build delivers outputs of the type that ONNX infers",
    "exception": "a valid model compiles and runs under every build setting",
    "death": "the process survives, whatever the model",
    "hang": "compilation and run come to an end",
    "memory": "memory use stays in proportion to the model",
    "accepted": "an invalid model is refused with an error",
}
RULES = {
    "bits": "The two builds must agree in every bit here, and do not; no tolerance is involved.",
    "exact": (
        "Every value that reaches this output is only moved or compared, or is an integer small enough for the type "
        "to hold it and all partial results. Every order of evaluation and every fusion must therefore give the same "
        "bits, and rounding cannot explain any difference."
    ),
    "monte-carlo": (
        "The unoptimised model was run again with relative noise of a few units in the last place on every use of a "
        "float value (Monte-Carlo arithmetic). How far an element moves under that noise is how far rounding can "
        "move it; the difference between the builds lies well outside."
    ),
    "fixed": "The largest difference exceeds a fixed threshold (Chebyshev distance); rounding was not weighed.",
    "structure": "The outputs differ in presence, type or shape, which rounding cannot do.",
    "declared": (
        "No build is held against another: the unoptimised build itself gives the output a type that contradicts the "
        "one that ONNX's shape inference derives from the operators' definitions."
    ),
    "library": (
        "The library that the operator is from has computed the right result. An element may be off by what its type "
        "explains and by what it moves when the inputs are moved in their last places; here it is off by more."
    ),
    "status": "No values are compared: one build fails, which rounding cannot do.",
    "invalid": (
        "The program breaks a rule of its operator on purpose, as the evidence says. Any error is right; to die, to go "
        "on for ever, or to compute something is not."
    ),
}
"""What each comparison rule says, for a reader who must decide whether rounding may explain the finding."""


_LIBRARY = "library"
"""The rule of findings that compare a front end with the library of an operator."""

_FAITHFUL = "the compiler computes what the library computes, with the same outputs, types and shapes"


def title_of(stored: Stored) -> str:
    """Return the issue's title, one line."""
    signature = stored.finding.property.signature
    where = f" at {signature.stage}" if signature.stage else ""
    cause = ""
    if signature.culprits:
        how = "in the conversion by" if stored.finding.facts.get("rule") == _LIBRARY else "caused by"
        cause = f" {how} {' + '.join(signature.culprits)}"
    elif signature.text:
        cause = f": {signature.text[:80]}"
    again = "regression: " if stored.finding.facts.get("regression") else ""
    return f"[{signature.target}] {again}{_NOUN[signature.kind]}{where}{cause}"


def render_issue(stored: Stored, model: str) -> str:
    """Return the issue as markdown; `model` is the text form of the finding's program."""
    finding, facts = stored.finding, stored.finding.facts
    signature = finding.property.signature
    known = facts.get("known")
    text = _template().render(
        title=title_of(stored),
        message=_fenced("text", finding.message, MESSAGE_LIMIT, "finding.json"),
        expected=_EXPECTED[signature.kind] if facts.get("rule") != _LIBRARY else _FAITHFUL,
        actual=_actual(stored),
        builds=build_lines(facts),
        size=_size(facts),
        model=_fenced("text", _short_lines(model), MODEL_LIMIT, "model.onnx"),
        script=_fenced("python", stored.script, SCRIPT_LIMIT, "repro.py") if stored.script else "",
        culprit=culprit_text(stored),
        versions=sorted({**facts.get("environment", {}), **stored.versions}.items()),
        found=_found(stored),
        rule=RULES.get(facts.get("rule", ""), ""),
        evidence=evidence_rows(facts),
        regression=facts.get("regression") or {},
        known=f"{known.get('link', '')} {known.get('note', '')}".strip() if known else "",
        signature=str(signature),
        identifier=finding.identifier,
        status=stored.status,
        reproduced=facts.get("reproduced"),
    )
    printable = text.encode("utf-8", "backslashreplace").decode()
    return re.sub(r"\n{3,}", "\n\n", printable).strip() + "\n"


@cache
def _template() -> jinja2.Template:
    source = files("miscompile.reports").joinpath("templates", "issue.md.j2").read_text("utf-8")
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )
    return environment.from_string(source)


def _actual(stored: Stored) -> str:
    facts, kind = stored.finding.facts, stored.finding.property.signature.kind
    output = f" of output `{facts['output']}`" if facts.get("output") else ""
    match kind:
        case "wrong":
            difference = facts.get("details", {}).get("difference")
            size = f"; the largest difference is {difference:.6g}" if isinstance(difference, int | float) else ""
            between = "from the library's" if facts.get("rule") == _LIBRARY else "between the builds"
            return f"the values{output} differ {between}{size}"
        case "missing" | "shape" | "dtype":
            return f"an {_NOUN[kind]}{output}".replace("an missing", "a missing")
        case "exception":
            return "an error is raised (above)"
        case "death":
            return "the process dies (above)"
        case "hang":
            return "no end within the time limit (above)"
        case "memory":
            return "memory grows to the limit (above)"
        case "accepted":
            return "the model is compiled and run to values (above)"


def build_lines(facts: Mapping[str, Any]) -> list[str]:
    """Return a line for each build that was compared, and for other conditions of the bug."""
    lines = []
    for role, title in (("faulty", "Build at fault"), ("reference", "Held against")):
        build = facts.get(role)
        if build:
            off = f", passes off: {', '.join(build['disabled'])}" if build["disabled"] else ""
            plural = "" if build["threads"] == 1 else "s"
            other = f"`{facts['against']}`, " if role == "reference" and facts.get("against") else ""
            lines.append(
                f"{title}: {other}level `{build['level']}`, {build['threads']} thread{plural}, {build['device']}{off}"
            )
    if facts.get("needs"):
        lines.append(f"Shows only with: {', '.join(facts['needs'])}, which the script sets (not a default)")
    return [*lines, *_votes(facts.get("details", {}).get("votes", {}))]


def _votes(votes: Mapping[str, int]) -> list[str]:
    """Return a line with the groups of compilers that agreed, if several voted."""
    groups: dict[int, list[str]] = {}
    for voter, group in votes.items():
        groups.setdefault(group, []).append(f"`{voter}`")
    return [f"Agreed with each other: {' | '.join(', '.join(group) for group in groups.values())}"] if votes else []


def _size(facts: Mapping[str, Any]) -> str:
    nodes, before = facts.get("nodes"), facts.get("original_nodes")
    if not nodes:
        return "In text form (`model.onnx` beside this file):"
    text = f"{nodes} node{'' if nodes == 1 else 's'}"
    return f"{text}{f', reduced from {before}' if before and before != nodes else ''}, in text form:"


def culprit_text(stored: Stored) -> str:
    """Return what is known of the cause: culprit passes, phase, class of optimisations, first bad release."""
    culprits = stored.finding.property.signature.culprits
    how = stored.finding.facts.get("attribution", "")
    return (
        _blame(stored, culprits, how)
        + _phase(stored.finding.facts.get("phase"))
        + _resisted(stored.finding.facts.get("resisted"))
        + _history(stored.finding.facts.get("releases"))
    )


def _phase(phase: Mapping[str, Any] | None) -> str:
    """Return a sentence on the culprit phase of the compilation, if it is known."""
    if not phase:
        return ""
    what = "fails in" if phase["fails"] else "goes wrong in"
    how = "compiled up to it with the flags of the faulty build, from there without"
    return f"\n\nThe compilation {what} phase `{phase['phase']}`: {how}."


def _resisted(healing: Mapping[str, Any] | None) -> str:
    """Return a sentence on the culprit class of optimisations, if barriers against it remove the bug."""
    if not healing:
        return ""
    text = f"\n\nClass of optimisations: {healing['class']}. The bug is gone when a barrier that changes no value"
    edges = [f"`{edge}`" for edge in healing["edges"]]
    return f"{text} stands on this edge: {edges[0]}." if edges else f"{text} stands on every edge that the class needs."


def _history(releases: Mapping[str, Any] | None) -> str:
    """Return a sentence on the release that introduced the bug, if that was searched for."""
    if not releases:
        return ""
    name, good = releases["distribution"], releases["last_good"]
    before = f"{name} {good} does not show it" if good else "no older release could be asked"
    return f"\n\nFirst release that shows it: {name} {releases['first_bad']}; {before}."


def _blame(stored: Stored, culprits: Sequence[str], how: str) -> str:
    if stored.finding.facts.get("rule") == _LIBRARY:
        return _converted(stored, culprits)
    if not culprits and stored.status == "pending":
        return "Not examined yet."
    if not culprits:
        return how or "No optional pass is to blame: the bug shows whatever passes are switched off, or none can be."
    names = ", ".join(f"`{name}`" for name in culprits)
    alone = "with this one off as well" if len(culprits) == 1 else "without any one of these"
    text = f"{names}. With every other optional pass switched off the bug shows; {alone} it does not."
    return f"{text} {how or 'Found by delta debugging over the pass switches of the compiler.'}"


def _converted(stored: Stored, functions: Sequence[str]) -> str:
    """Return a sentence on the culprit conversion function and the unoptimised build."""
    names = ", ".join(f"`{name}`" for name in functions)
    text = f"{names}: the conversion function of the operator `{stored.finding.facts.get('operator', '')}`."
    off = stored.finding.facts.get("unoptimised", "")
    if off == "fails as well":
        return f"{text} The build without optimisation fails in the same way, so that no optimisation is to blame."
    return f"{text} The build without optimisation does not fail like this: {off}." if off else text


def _found(stored: Stored) -> str:
    facts, recipe = stored.finding.facts, stored.finding.case.recipe
    recipe = recipe or (stored.original.recipe if stored.original else {})
    text = "Found by miscompile"
    if "test" in facts:
        text += f" in test {facts['test']}"
    if "seed" in recipe:
        text += f", seed {recipe['seed']}"
    if facts.get("found_as"):
        text += f", in another form of the program (`{facts['found_as']}`)"
    return f"{text}.{seed_sentence(recipe.get('from'))}"


def seed_sentence(origin: Mapping[str, Any] | None) -> str:
    """Return a sentence on the model that the program began from, if it began from a slice of one."""
    if not origin:
        return ""
    package = f" of {origin['package']}" if origin["package"] else ""
    nodes = [f"`{node}`" for node in origin["nodes"][:MOST_NODES]]
    more = len(origin["nodes"]) - len(nodes)
    listed = f" ({', '.join(nodes)}{f' and {more} more' if more else ''})" if nodes else ""
    return f" The program began from a slice of the model `{origin['model']}`{package}{listed}."


def evidence_rows(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the measurements of the evidence as names and texts."""
    names = {
        "feed": "input set that shows it, counted from 0",
        "ratio": "difference over what rounding explains",
        "difference": "largest difference",
        "allowed": "difference that the rule allows",
    }
    apart = ("output", "elements")
    details = {names.get(key, key): value for key, value in facts.get("details", {}).items() if key not in apart}
    merged = {**details, **facts.get("evidence", {})}
    if "referee" in facts:
        merged["second implementation"] = facts["referee"]["message"]
    return [(name, f"{value:.6g}" if isinstance(value, float) else str(value)) for name, value in merged.items()]


def _short_lines(text: str) -> str:
    return "\n".join(
        line if len(line) <= LINE_LIMIT else f"{line[:LINE_LIMIT]} ... ({len(line) - LINE_LIMIT} more characters)"
        for line in text.splitlines()
    )


def _fenced(language: str, text: str, limit: int, file: str) -> str:
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    if len(text) > limit:
        text = f"{text[:limit].rsplit(chr(10), 1)[0]}\n... cut here; `{file}` beside this text is whole"
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"

"""The issue text of a stored finding, in the order in which a maintainer reads it.

Optional facts that it shows (all JSON): `rule`, `output`, `faulty`, `reference`, `details` (written by
`miscompile.findings.encode.evidence_facts`); `nodes`, `original_nodes`; `test`, the index of the test that found it;
`attribution`, a sentence on how the culprits were found; `environment`, further names and versions; `reproduced`;
`regression`, an object with `fixed_in`, `release` and `link`; `releases` (see `engine/releases.py`);
`rewriting` (see `triage/rewriting.py`) and `boundary` (see `triage/boundary.py`); `differences` of a neighbour (see
`triage/parents.py`); `evidence`, a mapping of further measurements;
`found_as`, the form of the program in which the bug was found; `needs`, the names of options of the compiler that the
bug needs; `switching`, an object with `alone` and `gone` (see `triage/claims.py`);
`resisted`, an object with `class`, `edges` and `healing`; `referee`, an object with `message`; `known`, an object with
`link` and `note`.
"""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from statistics import median
from typing import Any

import jinja2

from miscompile.findings.folder import Stored
from miscompile.findings.switches import switches_of
from miscompile.reports.compared import compared_elements
from miscompile.reports.forms import IssueForm, form_of
from miscompile.reports.releases_tried import tried_releases
from miscompile.reports.wording import as_raised, changed_operators, summary_of, title_of

MESSAGE_LIMIT = 4_000
MODEL_LIMIT = 20_000
SCRIPT_LIMIT = 35_000
"""Greatest number of characters in a block; trackers accept 65,536 in a text."""
MOST_NODES = 12
"""Operators of a real model that an issue names."""

_MOST_ELEMENTS = 6
"""Wrong elements that an issue lists."""

LINE_LIMIT = 300
"""Characters of a line of the model: the elements of large constants do not help a reader."""

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
    "cost": (
        "CPU time is measured, and not the time of a clock, three times for each build. Whatever has to be much counts "
        "with its least measurement, and whatever it is held against with its greatest one. No test for the repository "
        "is written, because a limit of time fails on other machines; the script prints the series instead."
    ),
    "status": "No values are compared: one build fails, which rounding cannot do.",
    "forms": (
        "No values are compared. The compiler refuses a valid call and takes the same operator, with the same element "
        "types, in another form. That the form was never planned is a possible answer."
    ),
    "invalid": (
        "The program breaks a rule of its operator on purpose, or has elements for which the operator has no result, "
        "as the evidence says. Any error is right; to die or to go on for ever is not, nor to compute something where "
        "a rule is broken."
    ),
}
"""What each comparison rule says, for a reader who must decide whether rounding may explain the finding."""


_LIBRARY = "library"
"""The rule of findings that compare a front end with the library of an operator."""

_BY_VALUE = frozenset({"exact", "monte-carlo", "fixed", "bits", _LIBRARY})
"""The rules that compare values, so that a reader may think of rounding."""

_VOTES = {
    "reference": "onnx's reference implementation gives the expected values.",
    "faulty": "**onnx's reference implementation agrees with the actual values, not with the expected ones.** Then the "
    "build that was taken for right is wrong, and what is named here only makes the difference show.",
    "neither": "onnx's reference implementation gives other values than both builds.",
}
"""What a reader is told about the vote of onnx's reference implementation."""

_WITHOUT_VALUES = frozenset({"structure", "status"})
"""The rules that no issue explains, because they compare no values."""


def render_issue(stored: Stored, model: str, alike: Sequence[str] = ()) -> str:
    """Return the issue as markdown, in the form of the target's project.

    `model` is the text form of the finding's program, and `alike` are lines about findings that seem to be the same
    bug.
    """
    finding, facts = stored.finding, stored.finding.facts
    form = form_of(finding.property.target)
    parts = _parts(stored, form, alike)
    sections = []
    for section in form.sections:
        text = "\n\n".join(filter(None, (section.text, *(parts[part] for part in section.parts))))
        if text:
            sections.append((section.heading, text))
    rule = facts.get("rule", "")
    signature = finding.property.signature
    rewriting = facts.get("rewriting")
    text = _template().render(
        title=title_of(stored),
        sections=sections,
        builds=build_lines(facts),
        size=_size(facts),
        model=_fenced("text", _short_lines(model), MODEL_LIMIT, "model.onnx"),
        after=_fenced("text", _short_lines(rewriting["after"]), MODEL_LIMIT, "finding.json") if rewriting else "",
        by=", ".join(f"`{name}`" for name in signature.culprits),
        found=_found(stored),
        rule="" if rule in _WITHOUT_VALUES else RULES.get(rule, ""),
        by_value=rule in _BY_VALUE and signature.kind == "wrong",
        resisted=_resisted(facts.get("resisted")).strip(),
        evidence=evidence_rows(facts),
        signature=str(signature),
        identifier=finding.identifier,
        status=stored.status,
        reproduced=facts.get("reproduced"),
    )
    printable = text.encode("utf-8", "backslashreplace").decode()
    return re.sub(r"\n{3,}", "\n\n", printable).strip() + "\n"


def _parts(stored: Stored, form: IssueForm, alike: Sequence[str]) -> dict[str, str]:
    """Return the text of each part of `forms.PARTS`; an empty one for what this finding has not."""
    facts, known = stored.finding.facts, stored.finding.facts.get("known")
    return {
        "summary": "\n\n".join(filter(None, (summary_of(stored, form), _needs(facts)))),
        "message": "" if stored.finding.property.signature.kind == "missing" else _message(stored),
        "values": "\n\n".join(
            filter(None, (_values(facts) or _series(facts), _VOTES.get(facts.get("reference_vote", ""), "")))
        ),
        "cause": culprit_text(stored),
        "boundary": _boundary(facts),
        "alike": _alike(alike),
        "script": _script(stored),
        "environment": _environment(stored),
        "regression": "\n\n".join(
            filter(None, (_regression(facts.get("regression") or {}), tried_releases(facts.get("releases") or {})))
        ),
        "known": f"Known upstream: {known.get('link', '')} {known.get('note', '')}".strip() if known else "",
    }


def _needs(facts: Mapping[str, Any]) -> str:
    """Return a sentence on what is no default and is needed, so that nobody takes the bug for one of the defaults."""
    needed = switches_of(facts)
    if not needed:
        return ""
    return f"It shows only with {' and '.join(needed)}, which the script does and which is no default."


def _message(stored: Stored) -> str:
    return _fenced("text", as_raised(stored.finding.message), MESSAGE_LIMIT, "finding.json")


def _script(stored: Stored) -> str:
    if not stored.script:
        return (
            "No script was written for this finding yet. `model.onnx` and `feeds.npz` beside this file are the model "
            "and its inputs."
        )
    shows = "Dies" if stored.finding.property.signature.kind in ("death", "hang") else "Exits with 1"
    told = f"{shows} when the bug shows and exits with 0 when it does not."
    return f"{told}\n\n{_fenced('python', stored.script, SCRIPT_LIMIT, 'repro.py')}"


def _environment(stored: Stored) -> str:
    versions = sorted({**stored.finding.facts.get("environment", {}), **stored.versions}.items())
    return "\n".join(f"- {name} {version}" for name, version in versions) or "- versions were not noted"


def _regression(regression: Mapping[str, str]) -> str:
    if not regression:
        return ""
    link = f", see {regression['link']}" if regression.get("link") else ""
    fixed, again = regression["fixed_in"], regression["release"]
    return f"Regression: the same bug was fixed in {fixed} and shows again in {again}{link}."


def _values(facts: Mapping[str, Any]) -> str:
    """Return the first wrong elements of the output, expected and actual side by side, as a table."""
    rows = [one for one in compared_elements(facts.get("details", {})) if one.wrong][:_MOST_ELEMENTS]
    if not rows:
        return ""
    bounded = any(one.allowed not in ("", "0") for one in rows)
    head = ["element", "expected", "actual", *(["explained by rounding"] if bounded else [])]
    cells = [[one.place, one.reference, one.faulty, *([one.allowed] if bounded else [])] for one in rows]
    return _table(head, cells)


def _series(facts: Mapping[str, Any]) -> str:
    """Return the series of a finding of cost as a table: the median of the measurements, and the growth of memory."""
    rows = facts.get("details", {}).get("series", ())
    if not rows:
        return ""
    what = "run_cpu" if facts["details"].get("cost") == "run time" else "compile_cpu"
    unit = "of a run" if what == "run_cpu" else "of a build"
    cells = []
    for row in rows:
        builds = [row["plain"], row["full"]]
        spent = [f"{median(one[what]):.4f}" if one[what] else "" for one in builds]
        grown = [f"{max(one['compile_bytes']) / 2**20:.0f}" if one["compile_bytes"] else "" for one in builds]
        cells.append([str(row["copies"]), str(row["nodes"]), *spent, *grown])
    head = [
        "copies", "nodes", f"CPU s {unit}, unoptimised", f"CPU s {unit}, optimised", "MiB of the build, unoptimised",
        "MiB of the build, optimised",
    ]  # fmt: skip
    told = (
        f"Copies of the model in one model (pattern `{facts['details']['pattern']}`). Times are the median of "
        f"{len(rows[-1]['full']['compile_cpu'])} measurements."
    )
    return f"{told}\n\n{_table(head, cells)}"


def _boundary(facts: Mapping[str, Any]) -> str:
    """Return the boundary of the bug as a table."""
    rows = boundary_rows(facts)
    return _table(["with another", "shows the bug", "does not"], rows) if rows else ""


def boundary_rows(facts: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return rows of an aspect of the program, the values of it that show the bug, and those that do not."""
    return [
        (aspect, _listed(lists["shows"]), _listed(lists["works"]))
        for aspect, lists in (facts.get("boundary") or {}).items()
        if lists["works"] or len(lists["shows"]) > 1
    ]


def _listed(values: Sequence[str]) -> str:
    """Return values as a text, numbers in order and in a row as a range."""
    if not values or not all(value.isdigit() for value in values):
        return ", ".join(values) or "-"
    runs: list[list[int]] = []
    for number in sorted(map(int, values)):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


def _alike(alike: Sequence[str]) -> str:
    return "Seems to be the same bug:\n\n" + "\n".join(f"- {line}" for line in alike) if alike else ""


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
    """Return what is known of the cause: culprit passes, phase and first bad access."""
    culprits, facts = stored.finding.property.signature.culprits, stored.finding.facts
    how = facts.get("attribution", "")
    return _blame(stored, culprits, how) + _phase(facts.get("phase")) + _accessed(facts.get("first_access"))


def _accessed(access: Mapping[str, Any] | None) -> str:
    """Return a sentence on the first bad access of memory, if a checker has named it."""
    if not access:
        return ""
    where = f" ({access['where']})" if access["where"] else ""
    frames = " < ".join(f"`{frame}`" for frame in access["frames"])
    return f"\n\nFirst bad access: {access['what']}{where}{f', in {frames}' if frames else ''}, by {access['checker']}."


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


def _blame(stored: Stored, culprits: Sequence[str], how: str) -> str:
    if stored.finding.facts.get("rule") == _LIBRARY:
        return _converted(stored, culprits)
    if not culprits and stored.status == "pending":
        return "Not examined yet."
    if not culprits:
        return how or "No optional pass is to blame: the bug shows whatever passes are switched off, or none can be."
    names = ", ".join(f"`{name}`" for name in culprits)
    switching, rewriting = (stored.finding.facts.get(key) for key in ("switching", "rewriting"))
    did = f"{names} {changed_operators(rewriting)}." if rewriting else f"Caused by {names}."
    return " ".join(filter(None, (did, _switched(culprits, switching) if switching else "", how)))


def _switched(culprits: Sequence[str], switching: Mapping[str, Any]) -> str:
    """Return sentences on the runs in which the culprits were switched."""
    told = []
    if switching["alone"]:
        told.append("With every other optional pass switched off the bug shows.")
    gone = [name for name in culprits if switching["gone"].get(name)]
    stays = [name for name in culprits if name not in gone]
    if gone:
        any_of = " or ".join(f"`{name}`" for name in gone)
        told.append(f"With only {any_of} switched off it is gone.")
    if stays:
        any_of = " or ".join(f"`{name}`" for name in stays)
        told.append(f"With only {any_of} switched off it still shows, by way of another pass.")
    return " ".join(told)


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
    return f"{text}.{neighbour_sentence(facts)}{seed_sentence(recipe.get('from'))}"


def neighbour_sentence(facts: Mapping[str, Any]) -> str:
    """Return sentences on the library's test from which a neighbour differs, empty for any other finding.

    Triage has undone the differences that the bug does not need. A finding that nobody has triaged, or an instance
    that does not say what it was made from, names all of them.
    """
    told = facts.get("differences")
    if told:
        return _differences(told)
    try:
        instance = json.loads(str(facts.get("instance", "{}")))
    except ValueError:
        return ""
    if instance.get("source") != "neighbours":
        return ""
    words, _, test = str(instance.get("origin", "")).partition("; from ")
    return f" Before the reduction, the operator differed from `{test}` by: {words}."


def _differences(told: Mapping[str, Any]) -> str:
    """Return sentences on the differences from the library's test that the bug needs, and those that it does not."""
    test = f"`{told['test'] or 'a test'}` of the library"
    needless = f" The bug does not need these: {'; '.join(told['undone'])}." if told["undone"] else ""
    if not told["needed"]:
        return f" The operator was varied from {test}, and the test's own parameters show it as well.{needless}"
    needed = "; ".join(told["needed"])
    return f" Before the reduction, the operator differed from {test} by: {needed}.{needless}"


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
    apart = ("output", "elements", "series")
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

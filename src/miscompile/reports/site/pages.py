"""The pages of the site as HTML, each complete in itself: no file is loaded beside it.

Names in a store come from models and compilers, so every page treats them as hostile. Templates escape every value;
characters that a reader cannot see are written as escapes; a script never contains a value; links lead to the web or
to other pages; and a policy in each page's head admits one script and one style sheet, by their digests.
"""

import base64
import hashlib
import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

import jinja2
from markupsafe import Markup, escape

from miscompile import __version__
from miscompile.base.errors import MiscompileError
from miscompile.core.arms import arms_json
from miscompile.findings.folder import Stored
from miscompile.findings.ledger_entry import LedgerEntry, key_of, of_all_releases, utc_now
from miscompile.graph.text.parser import parse_model
from miscompile.producers.slices.table import SupportTable, difference
from miscompile.reports.compared import compared_elements
from miscompile.reports.issue import RULES, boundary_rows, build_lines, culprit_text, evidence_rows
from miscompile.reports.site.content import GROUPS, Contents, Entry, web_link
from miscompile.reports.site.graphs import Drawing, draw_graph, draw_program, marks_of
from miscompile.reports.site.overview import HEIGHT, WIDTH, breakdowns, chart, stages
from miscompile.reports.site.passes import passes_of
from miscompile.reports.site.since import Since
from miscompile.reports.site.tensors import shown_inputs
from miscompile.reports.wording import title_of
from miscompile.reports.writer import model_text

INDEX, PASSES, SUPPORT = "index.html", "passes.html", "support.html"

_TEMPLATES = "templates/site"
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_MOST_TEXT = 200_000
"""Characters of a text on a page; the finding's folder has the whole."""

_MOST_CASES = 2_000


@dataclass(frozen=True, slots=True)
class SiteView:
    """All that the pages show. A live page loads itself anew after `refresh` seconds, 0: never."""

    stores: Sequence[Contents]
    since: Since | None = None
    tables: Sequence[SupportTable] = ()
    problems: Sequence[str] = ()
    refresh: int = 0
    made: str = field(default_factory=utc_now)

    @property
    def entries(self) -> list[Entry]:
        """The findings of all stores."""
        return [entry for store in self.stores for entry in store.entries]


def overview_page(site: SiteView) -> str:
    """Return the page `index.html`."""
    problems = [*site.problems, *(f"{store.label}: {line}" for store in site.stores for line in store.problems)]
    return _render(
        "overview", site, root="", page=INDEX, title="Findings", groups=GROUPS, problems=problems,
        breakdowns=breakdowns(site.entries), charts=[one for store in site.stores if (one := chart(store))],
        arms={store.label: arms_json(store.summary.arms) for store in site.stores if store.summary.arms},
        stages={store.label: rows for store in site.stores if (rows := stages(store.summary.counters))},
        ledgers=[store for store in site.stores if store.ledger], width=WIDTH, height=HEIGHT,
        counts={store.label: {group: sum(one.group == group for one in store.entries) for group in GROUPS}
                for store in site.stores},
    )  # fmt: skip


def passes_page(site: SiteView) -> str:
    """Return the page `passes.html`."""
    found = [passes for store in site.stores for passes in passes_of(store)]
    return _render("passes", site, root="", page=PASSES, title="Passes", passes=found)


def support_page(site: SiteView) -> str:
    """Return the page `support.html`: the tables, and what differs between two of one target."""
    by_target: dict[str, list[SupportTable]] = {}
    for table in site.tables:
        by_target.setdefault(table.target.partition("==")[0], []).append(table)
    pairs = [pair for tables in by_target.values() for pair in pairwise(tables)]
    changes = [(_named(one), _named(other), difference(one, other)[:_MOST_CASES]) for one, other in pairs]
    tables = [(_named(table), table) for table in site.tables]
    return _render("support", site, root="", page=SUPPORT, title="Support", tables=tables, changes=changes)


def finding_page(site: SiteView, contents: Contents, entry: Entry, stored: Stored) -> str:
    """Return the page of a finding, at `entry.page`."""
    finding, facts = stored.finding, stored.finding.facts
    signature = finding.property.signature
    wrong = str(facts.get("output", ""))
    original = stored.original
    of_this = [one for one in contents.entries if one.page]
    return _render(
        "finding", site, root="../", page=entry.page, title=title_of(stored), entry=entry, stored=stored, facts=facts,
        signature=signature, rule=RULES.get(str(facts.get("rule", "")), ""), cause=culprit_text(stored).split("\n\n"),
        builds=build_lines(facts), evidence=evidence_rows(facts), model=model_text(finding.case.program)[:_MOST_TEXT],
        drawing=draw_program(finding.case.program, wrong, marks_of(facts)),
        after=_after(facts), boundary=boundary_rows(facts), by=", ".join(signature.culprits),
        before=None if original is None else draw_program(original.program, wrong),
        inputs=shown_inputs(finding.case), elements=compared_elements(facts.get("details", {})),
        output=wrong, known=_known(facts, _ledger_entry(contents, stored)), versions=sorted(stored.versions.items()),
        related=[one for one in of_this if one.record.identifier == facts.get("slip_of")],
        alike=[one for one in of_this if one.record.identifier in _alike(contents, finding.identifier)],
        history=_history(stored, contents), recipe=json.dumps(dict(finding.case.recipe), indent=1)[:_MOST_TEXT],
        script=stored.script[:_MOST_TEXT], issue=stored.issue[:_MOST_TEXT], contents=contents,
    )  # fmt: skip


def _after(facts: Mapping[str, Any]) -> Drawing | None:
    """Return the drawing of the program that the culprit passes leave, if the target could write it."""
    text = facts.get("rewriting", {}).get("after", "")
    try:
        return draw_graph(parse_model(text).graph) if text else None
    except MiscompileError:
        return None


def _alike(contents: Contents, identifier: str) -> tuple[str, ...]:
    """Return the identifiers of the findings that seem to have the same cause."""
    clusters = contents.summary.clusters
    found = next((one.identifiers for one in clusters if identifier in one.identifiers), ())
    return tuple(other for other in found if other != identifier)


def problem_page(message: str) -> str:
    """Return the page of a live site that shows an error."""
    return _render("problem", SiteView(()), root="/", page="", title="Not shown", message=message)


def _known(facts: Mapping[str, Any], entry: LedgerEntry | None) -> list[tuple[str, str, str]]:
    """Return what is known of the bug: rows of name, text and link."""
    rows = []
    known = facts.get("known")
    if isinstance(known, Mapping):
        rows.append(("known bug", str(known.get("note", "")), web_link(str(known.get("link", "")))))
    regression = facts.get("regression")
    if isinstance(regression, Mapping):
        text = f"fixed in {regression.get('fixed_in', '?')}, back in {regression.get('release', '?')}"
        rows.append(("regression", text, web_link(str(regression.get("link", "")))))
    if entry is not None:
        state = f"{entry.state} {entry.fixed_in or entry.duplicate_of}".strip()
        rows.append(("ledger", f"{state}; seen {entry.seen} times. {entry.note}".strip(), web_link(entry.link)))
    return rows


def _ledger_entry(contents: Contents, stored: Stored) -> LedgerEntry | None:
    named = stored.finding.facts.get("ledger")
    keys = {str(named), key_of(of_all_releases(stored.finding.property.signature))}
    return next((entry for entry in contents.ledger if entry.key in keys), None)


def _history(stored: Stored, contents: Contents) -> list[tuple[str, str]]:
    """Return the steps from the test that found a finding to its present state."""
    facts = stored.finding.facts
    recipe = stored.finding.case.recipe or (stored.original.recipe if stored.original else {})
    campaign = f"seed {recipe['seed']}" if "seed" in recipe else "an unknown seed"
    rows = [
        (
            "found",
            f"test {facts.get('test', '?')} of {contents.label}, session {recipe.get('session', '?')}, {campaign}",
        )
    ]
    for key, name in (("arm", "technique"), ("producer", "producer")):
        if recipe.get(key):
            rows.append((name, str(recipe[key])))
    if facts.get("found_as"):
        rows.append(("found as", str(facts["found_as"])))
    reduction = facts.get("reduction")
    if isinstance(reduction, Mapping):
        size = f"{facts.get('original_nodes', '?')} to {facts.get('nodes', '?')} nodes"
        whole = "complete" if reduction.get("complete") else "stopped before its end"
        rows.append(("reduced", f"{size} in {reduction.get('tries', '?')} tries, {whole}"))
    if facts.get("reproduced") is not None:
        rows.append(("fresh process", "shows it again" if facts["reproduced"] else "does not show it"))
    releases = facts.get("releases")
    if isinstance(releases, Mapping):
        tried = [one for one in releases.get("tried", ()) if isinstance(one, Mapping)]
        asked = ", ".join(f"{one.get('release')} {one.get('answer')}" for one in tried)
        rows.append(("releases asked", asked or str(releases.get("first_bad", "?"))))
    for key, name in (("unconfirmed", "not confirmed"), ("slip_of", "met while examining")):
        if facts.get(key):
            rows.append((name, str(facts[key])))
    return rows


def _named(table: SupportTable) -> str:
    versions = " ".join(f"{name} {version}" for name, version in table.versions.items())
    return f"{table.target} ({versions}), level {table.level}"


def _render(template: str, site: SiteView, **values: Any) -> str:  # noqa: ANN401 - what the template shows
    tabs = [(INDEX, "Overview"), (PASSES, "Passes"), *([(SUPPORT, "Support")] if site.tables else [])]
    shown = {**values, "site": site, "tabs": tabs, "version": __version__}
    return _environment().get_template(f"{template}.html.j2").render(shown)


@cache
def _environment() -> jinja2.Environment:
    folder = files("miscompile.reports").joinpath(*_TEMPLATES.split("/"))
    texts = {one.name: one.read_text("utf-8") for one in folder.iterdir() if one.name.endswith(".j2")}
    style, script = (folder.joinpath(name).read_text("utf-8").strip() for name in ("site.css", "site.js"))
    environment = jinja2.Environment(
        loader=jinja2.DictLoader(texts), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, finalize=_printable,
    )  # fmt: skip
    policy = (
        f"default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src '{_digest(style)}'; script-src '{_digest(script)}'"
    )
    # Both texts are files of this package. They contain no value and no end tag.
    environment.globals.update(style=Markup(style), script_text=Markup(script), policy=policy)
    environment.filters.update(clock=_clock, digits="{:,}".format, web=web_link, coded=_coded)
    return environment


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _printable(value: object) -> object:
    """Return a value of a template with each invisible character as an escape, except line breaks and tabs."""
    if not isinstance(value, str) or isinstance(value, Markup) or value.isprintable():
        return value
    return "".join(
        one.encode("unicode_escape").decode() if one not in "\n\t" and unicodedata.category(one) in _INVISIBLE else one
        for one in value
    )


def _coded(text: str) -> Markup:
    """Return text as HTML with its parts between backticks as code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # a name has a backtick
        return escape(_printable(text))
    code = Markup("<code>{}</code>")
    return Markup().join(
        code.format(_printable(one)) if at % 2 else escape(_printable(one)) for at, one in enumerate(parts)
    )


def _clock(seconds: float) -> str:
    """Return seconds as `1 h 12 min`, or `34 s` below two minutes."""
    minutes = round(seconds / 60)
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"

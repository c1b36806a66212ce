"""Writing the site into a folder, and the report of that name."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import jinja2

from miscompile.base.errors import InputError, StoreError
from miscompile.findings.folder import writing
from miscompile.findings.store import Store
from miscompile.reports.registry import Report
from miscompile.reports.site.content import SUPPORT, Contents, Entry, Reader, support_tables
from miscompile.reports.site.pages import (
    INDEX,
    PASSES,
    SiteView,
    finding_page,
    overview_page,
    passes_page,
    support_page,
)
from miscompile.reports.site.pages import SUPPORT as SUPPORT_PAGE
from miscompile.reports.site.since import STATE, read_state, since_last, state_of

FOLDER = "site"
"""The folder in OUT of the report's site."""


def write_site(outs: Sequence[Path], folder: Path, support: Iterable[Path] = ()) -> tuple[list[Path], list[str]]:
    """Write the site of the campaigns in `outs` to `folder`; return its files, the overview first, and problems.

    `support` are folders with support tables, in addition to OUT/support of each campaign. Problems are lines about
    findings and tables that could not be read, which are left out. Pages of an earlier site that are not part of this
    one are removed. Raises InputError for a folder without a campaign, or one to write to that holds other files.
    """
    _check(folder)
    reader = Reader()
    stores = reader.read(outs)
    tables, problems = support_tables([*(out / SUPPORT for out in outs), *support])
    pages: dict[str, str] = {}
    plain = SiteView(stores, tables=tables)
    shown = [_with_pages(plain, contents, reader, pages) for contents in stores]
    site = SiteView(shown, since_last(shown, read_state(folder)), tables, problems)
    whole = {INDEX: overview_page(site), PASSES: passes_page(site)}
    if tables:
        whole[SUPPORT_PAGE] = support_page(site)
    texts = {**whole, **pages, STATE: json.dumps(state_of(shown), indent=1) + "\n"}
    written = [_write(folder / name, text) for name, text in texts.items()]
    _remove_old(folder, set(written))
    return written, [*problems, *(line for contents in shown for line in contents.problems)]


def page_of(site: SiteView, contents: Contents, entry: Entry, reader: Reader) -> str:
    """Return the page of a finding. Raises StoreError when its folder is damaged, or holds facts of another form."""
    identifier = entry.record.identifier
    stored = reader.finding(contents.out, identifier)
    try:
        return finding_page(site, contents, entry, stored)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, jinja2.UndefinedError) as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise StoreError(
            f"finding {identifier} is damaged: a fact of it has another form than expected ({why})"
        ) from error


def _with_pages(site: SiteView, contents: Contents, reader: Reader, pages: dict[str, str]) -> Contents:
    """Add the page of each finding to `pages`; return the contents without links to those that cannot be shown."""
    entries, problems = [], list(contents.problems)
    for entry in contents.entries:
        try:
            if entry.page:
                pages[entry.page] = page_of(site, contents, entry, reader)
            entries.append(entry)
        except StoreError as error:
            problems.append(str(error))
            entries.append(replace(entry, page=""))
    return replace(contents, entries=tuple(entries), problems=tuple(dict.fromkeys(problems)))


def _check(folder: Path) -> None:
    """Raise InputError when `folder` holds anything but a site."""
    if folder.is_dir() and any(folder.iterdir()) and not (folder / STATE).exists():
        raise InputError(f"{folder} is not empty and holds no site; choose another --out")


def _write(path: Path, text: str) -> Path:
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f".new-{path.name}")
        fresh.write_text(text, "utf-8", "backslashreplace")
        fresh.replace(path)
    return path


def _remove_old(folder: Path, kept: set[Path]) -> None:
    for path in [*folder.glob("*.html"), *folder.glob("*/*.html")]:
        if path not in kept:
            path.unlink(missing_ok=True)


def _write_own(_: Store, out: Path) -> list[Path]:
    """Write the site of one campaign to OUT/site."""
    return write_site([out], out / FOLDER)[0]


SITE = Report("site", "the static site of a campaign, as site/index.html", _write_own)

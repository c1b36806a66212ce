"""A ledger as a TOML file, which people can read and edit, and which teams share.

    [[bug]]
    signature = {target = "onnxruntime", kind = "wrong", stage = "", culprits = ["DivMulFusion"], text = ""}
    state = "fixed-in"
    fixed_in = "1.25"
    link = "https://github.com/..."
    found = "2026-01-31T12:00:00Z"
    changed = "2026-02-28T12:00:00Z"

Fields with their defaults are left out; `findings.ledger_entry` describes them all.
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import tomli_w

from miscompile.base.errors import UsageError
from miscompile.findings.encode import signature_from
from miscompile.findings.folder import writing
from miscompile.findings.ledger_entry import LedgerEntry, checked, of_all_releases

SCHEMA = 1

_DEFAULTS = {one.name: one.default for one in fields(LedgerEntry)}
_TYPES: Mapping[str, type] = {"seen": int, "predicate": dict}


def ledger_text(entries: Iterable[LedgerEntry]) -> str:
    """Return entries as TOML, sorted by signature."""
    bugs = [_table(entry) for entry in sorted(entries, key=lambda one: one.key)]
    return tomli_w.dumps({"schema": SCHEMA, "bug": bugs})


def ledger_entries(text: str, where: str) -> list[LedgerEntry]:
    """Read back what `ledger_text` returned; `where` names the file in errors. Raises UsageError."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{where} is no TOML file: {error}") from None
    if data.get("schema") != SCHEMA:
        raise UsageError(f"{where} has the schema {data.get('schema')!r}; this miscompile reads {SCHEMA}")
    tables = data.get("bug", [])
    if not isinstance(tables, list):
        raise UsageError(f"{where}: write every bug as a table [[bug]]")
    return [_entry(table, f"{where}: bug {number}") for number, table in enumerate(tables, 1)]


def write_ledger(path: Path, entries: Iterable[LedgerEntry]) -> None:
    """Write entries to a TOML file, atomically. Raises StoreError when it cannot be written."""
    with writing(path):
        fresh = path.with_name(f".new-{path.name}")
        fresh.write_text(ledger_text(entries), "utf-8")
        fresh.replace(path)


def read_ledger(path: Path) -> list[LedgerEntry]:
    """Read a TOML file. Raises UsageError when it cannot be read or is no ledger."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    return ledger_entries(text, str(path))


def _table(entry: LedgerEntry) -> dict[str, Any]:
    signature = {**asdict(entry.signature), "culprits": list(entry.signature.culprits)}
    values = {name: getattr(entry, name) for name in _DEFAULTS if name != "signature"}
    given = {name: value for name, value in values.items() if value != _DEFAULTS[name]}
    return {"signature": _plain(signature), **_plain(given)}


def _plain(value: Any) -> Any:  # noqa: ANN401 - JSON values
    """Return a value without lone surrogates, which UTF-8 has no bytes for."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {_plain(key): _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def _entry(table: Any, where: str) -> LedgerEntry:  # noqa: ANN401 - anything may stand in a file
    if not isinstance(table, Mapping):
        raise UsageError(f"{where} is no table")
    for name, value in table.items():
        if name not in _DEFAULTS:
            raise UsageError(f"{where} has no field '{name}'; there are: {', '.join(_DEFAULTS)}")
        wanted = _TYPES.get(name, str)
        if name != "signature" and (not isinstance(value, wanted) or isinstance(value, bool)):
            raise UsageError(f"{where}: {name} is no {wanted.__name__}")
    try:
        parts = table["signature"]
        texts = (*parts["culprits"], parts["target"], parts["stage"], parts["text"])
        if isinstance(parts["culprits"], str) or not all(isinstance(one, str) for one in texts):
            raise TypeError("a signature has the texts target, kind, stage and text, and a list of texts, culprits")
        signature = of_all_releases(signature_from(parts))
        return checked(LedgerEntry(**{**table, "signature": signature}))
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{where} is malformed: {type(error).__name__}: {error}") from None

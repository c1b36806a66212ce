"""The folder of a finding: written atomically, readable for people, read back without loss.

    OUT/findings/<identifier>/
        finding.json         everything but the bytes, with a schema version
        model.onnx           the program (reduced, once reduction ran); feeds.npz its inputs
        original.onnx        the program before the reduction, when it differs; original-feeds.npz its inputs
        repro.py             the standalone script
        issue.md             the issue text
        upstream_test.py     a test for the compiler's own repository; further files where its tests have another form
        verdict.toml         what somebody who has read the finding says of it; it is kept when the folder is replaced

A folder is built under a temporary name, synced to disk and renamed. While a folder is replaced, the old one has the
name `.old-<identifier>`; `recover` and `load` know that name, so a kill at any moment leaves either the old or the new
state. Lanes and the coordinator write at the same time, so the exchange is done under a lock on the folder of findings,
which ends with the process that holds it. In `feeds.npz`, array `0_1` is input 1 of feed 0; bfloat16 is stored as
uint16 words, and strings as the bytes of a JSON list.
"""

import fcntl
import io
import json
import os
import re
import shutil
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from miscompile.base.digest import digest_bytes
from miscompile.base.errors import InputError, StoreError, write_error
from miscompile.core.case import Case, Feed
from miscompile.core.finding import Finding
from miscompile.core.verdict import FindingKind
from miscompile.findings.encode import (
    JsonObject,
    jsonable,
    ports_json,
    program_from,
    property_from,
    tensor_array,
    tensor_from,
)

SCHEMA = 1
FindingStatus = Literal["pending", "confirmed", "non-default", "unconfirmed", "known", "fixed"]
"""In this order: not yet triaged; repeated and reduced; the same, but it shows in no default build of the compiler; not
repeated; known to the target's `known.toml` or to the ledger; of an older release, and fixed in the one under test."""

ANNOUNCED: frozenset[FindingStatus] = frozenset({"confirmed", "pending"})
"""Statuses of the findings that make a campaign's exit code 1."""

REPEATED: frozenset[FindingStatus] = frozenset({"confirmed", "non-default", "known"})
"""Statuses of the findings that triage has repeated and reduced, in the release under test."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_PREFIXES = {"case": "", "original": "original-"}
_VERDICT = "verdict.toml"


@dataclass(frozen=True, slots=True)
class Stored:
    """A finding with the other contents of its folder.

    `original` is the case before reduction, None when it was not reduced; `versions` maps the PyPI names of the
    compilers to their versions; `script` and `issue` are the texts of `repro.py` and `issue.md`, empty until they are
    written.
    """

    finding: Finding
    status: FindingStatus = "pending"
    original: Case | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    script: str = ""
    issue: str = ""


def identify(kind: FindingKind, target: str, case: Case) -> str:
    """Return the identifier of a finding of `kind` that `case` shows on `target`.

    Equal cases have equal identifiers.
    """
    parts = [value.array.tobytes() for feed in case.feeds for value in feed if value.dtype != "string"]
    return f"{kind}-{digest_bytes(target.encode(), case.program.payload, *parts, length=10)}"


def place(out: Path, identifier: str) -> Path:
    """Return the folder of a finding. Raises StoreError for a malformed `identifier`."""
    if not _NAME.fullmatch(identifier):
        raise InputError(f"'{identifier}' is no identifier of a finding; `miscompile findings {out}` lists them")
    return out / "findings" / identifier


def save(out: Path, stored: Stored) -> Path:
    """Write the finding's folder atomically, replacing an older state of it; return the folder.

    It is synced to disk when this returns. Raises StoreError when the folder cannot be written.
    """
    final = place(out, stored.finding.identifier)
    fresh = final.with_name(f".new-{final.name}-{os.getpid()}-{threading.get_native_id()}")
    aside = final.with_name(f".old-{final.name}")
    with writing(final):
        final.parent.mkdir(exist_ok=True)  # OUT itself is not made again after it was deleted under a campaign
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        for name, data in files_of(stored).items():
            _write(fresh / name, data)
        _sync(fresh)
        with _locked(final.parent, fcntl.LOCK_EX):
            if final.exists():
                if (final / _VERDICT).exists():
                    shutil.copy2(final / _VERDICT, fresh / _VERDICT)
                shutil.rmtree(aside, ignore_errors=True)
                final.rename(aside)
            fresh.rename(final)
            _sync(final.parent)
            shutil.rmtree(aside, ignore_errors=True)
    return final


def add_file(out: Path, identifier: str, name: str, text: str) -> Path:
    """Write one text file into an existing finding's folder, atomically; return its path. Raises StoreError."""
    folder = place(out, identifier)
    path = folder / name
    with writing(path), _locked(folder.parent, fcntl.LOCK_EX):
        if not folder.is_dir():
            raise InputError(f"there is no finding '{identifier}' in {out}; `miscompile findings {out}` lists them")
        _write(path.with_name(f".new-{name}"), text.encode("utf-8", "backslashreplace"))
        path.with_name(f".new-{name}").replace(path)
        _sync(folder)
    return path


def load(out: Path, identifier: str) -> Stored:
    """Read a finding back. Raises StoreError when it is absent, damaged, or of another schema version."""
    with _locked(out / "findings", fcntl.LOCK_SH):
        return _load(out, identifier)


def _load(out: Path, identifier: str) -> Stored:
    folder = place(out, identifier)
    if not folder.is_dir() and folder.with_name(f".old-{identifier}").is_dir():
        folder = folder.with_name(f".old-{identifier}")
    if not folder.is_dir():
        raise InputError(f"there is no finding '{identifier}' in {out}; `miscompile findings {out}` lists them")
    try:
        data = json.loads((folder / "finding.json").read_text("utf-8"))
        if data["schema"] != SCHEMA:
            raise InputError(
                f"{folder} has schema version {data['schema']}, this miscompile reads {SCHEMA}; "
                "use the version of miscompile that wrote it"
            )
        return _stored(folder, data)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, zipfile.BadZipFile, EOFError) as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise StoreError(f"finding {folder} is damaged ({reason}); move the folder away or restore it") from None


def identifiers(out: Path) -> list[str]:
    """Return the identifiers of all findings on disk, sorted."""
    root = out / "findings"
    if not root.is_dir():
        return []
    names = {path.name.removeprefix(".old-") for path in root.iterdir() if path.is_dir()}
    return sorted(name for name in names if _NAME.fullmatch(name))


def recover(out: Path) -> None:
    """Finish or undo the unfinished writes of a killed process. Only the one writer of `out` may call this."""
    root = out / "findings"
    if not root.is_dir():
        return
    with writing(root), _locked(root, fcntl.LOCK_EX):
        for path in sorted(root.glob(".old-*")):
            final = path.with_name(path.name.removeprefix(".old-"))
            if final.exists():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.rename(final)
        for path in root.glob(".new-*"):
            shutil.rmtree(path, ignore_errors=True)


def remove(out: Path, identifier: str) -> None:
    """Remove the folder of a finding that is a duplicate of another one."""
    folder = place(out, identifier)
    with writing(folder), _locked(folder.parent, fcntl.LOCK_EX):
        if folder.is_dir():
            gone = folder.with_name(f".new-{identifier}")
            shutil.rmtree(gone, ignore_errors=True)
            folder.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)


@contextmanager
def _locked(root: Path, how: int) -> Iterator[None]:
    """Lock a folder, if it exists and its file system has locks: shared for reading, exclusive for an exchange."""
    try:
        descriptor = os.open(root, os.O_RDONLY)
    except OSError:
        yield  # the caller reports the missing folder
        return
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, how)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an operating-system error while writing `path` into a StoreError that says what to do."""
    try:
        yield
    except OSError as error:
        raise write_error(str(path), error, "; choose another --out or make room there") from None


def files_of(stored: Stored) -> dict[str, bytes]:
    """Return the names and bytes of the files that `save` writes."""
    finding = stored.finding
    data: JsonObject = {
        "schema": SCHEMA,
        "identifier": finding.identifier,
        "signature": str(finding.property.signature),
        "status": stored.status,
        "kind": finding.property.signature.kind,
        "message": finding.message,
        "property": asdict(finding.property),
        "versions": dict(stored.versions),
        "facts": jsonable(finding.facts),
    }
    files: dict[str, bytes] = {}
    for key, case in (("case", finding.case), ("original", stored.original)):
        data[key] = None if case is None else _case_json(case)
        if case is not None:
            prefix = _PREFIXES[key]
            files[f"{prefix}feeds.npz"] = _npz(case)
            files[_program_name(key, case.program.kind)] = case.program.payload
    if stored.script:
        files["repro.py"] = stored.script.encode("utf-8", "backslashreplace")
    if stored.issue:
        files["issue.md"] = stored.issue.encode("utf-8", "backslashreplace")
    files |= {name: text.encode("utf-8", "backslashreplace") for name, text in _upstream_tests(finding).items()}
    files["finding.json"] = json.dumps(data, indent=1, allow_nan=False).encode()
    return files


def _upstream_tests(finding: Finding) -> dict[str, str]:
    """Return the tests for the target's own repository by file name: a module for pytest, and what else it has."""
    facts = finding.facts
    tests = {str(name): str(text) for name, text in facts.get("upstream_files", {}).items() if Path(name).name == name}
    if module := str(facts.get("upstream_test") or ""):
        tests["upstream_test.py"] = f"{module.rstrip()}\n"
    return tests


def _program_name(key: str, kind: str) -> str:
    return f"{'model' if key == 'case' else 'original'}.{kind}"


def _case_json(case: Case) -> JsonObject:
    return {
        "program": ports_json(case.program),
        "feeds": [[{"dtype": value.dtype, "shape": list(value.shape)} for value in feed] for feed in case.feeds],
        "recipe": jsonable(case.recipe),
    }


def _npz(case: Case) -> bytes:
    arrays = {f"{i}_{j}": tensor_array(value) for i, feed in enumerate(case.feeds) for j, value in enumerate(feed)}
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def _stored(folder: Path, data: Mapping[str, Any]) -> Stored:
    if data["status"] not in get_args(FindingStatus):
        raise ValueError(f"unknown status '{data['status']}'")
    case = _case(folder, "case", data["case"])
    finding = Finding(data["identifier"], property_from(data["property"]), case, data["message"], data["facts"])
    original = None if data["original"] is None else _case(folder, "original", data["original"])
    script, issue = _text(folder / "repro.py"), _text(folder / "issue.md")
    return Stored(finding, data["status"], original, data["versions"], script, issue)


def _case(folder: Path, key: str, data: Mapping[str, Any]) -> Case:
    payload = (folder / _program_name(key, data["program"]["kind"])).read_bytes()
    program = program_from(data["program"], payload)
    packed = io.BytesIO((folder / f"{_PREFIXES[key]}feeds.npz").read_bytes())
    with np.load(packed, allow_pickle=False) as arrays:
        feeds = tuple(_feed(arrays, index, entries) for index, entries in enumerate(data["feeds"]))
    return Case(program, feeds, data["recipe"])


def _feed(arrays: Mapping[str, Any], index: int, entries: list[Mapping[str, Any]]) -> Feed:
    return tuple(
        tensor_from(entry["dtype"], tuple(entry["shape"]), arrays[f"{index}_{place}"])
        for place, entry in enumerate(entries)
    )


def _text(path: Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

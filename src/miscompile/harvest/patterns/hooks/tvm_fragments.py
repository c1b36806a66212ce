"""Extract the patterns from the records of one file of TVM's tests, and add the vetted ones to a library.

`python -m miscompile.harvest.patterns.hooks.tvm_fragments PAIRS LIBRARY`: PAIRS as `harvest.patterns.hooks.tvm`
writes it. LIBRARY gets a file `NAME.relax.json` for each new pattern (`targets/tvm/relax/transforms.py`
describes its contents), and lines in `vetted.jsonl`: `{"begun": DIGEST}` before a pattern is built, `{"ended":
DIGEST, "why": TEXT}` after it. A pattern with `begun` and without `ended` crashed this process; after a restart the
process skips that pattern. `{"refused": WHY}` records a piece of a module that cannot be a pattern, `{"done": PAIRS,
"bytes": SIZE}` the whole file. The parent process writes `{"stopped": DIGEST}` when it interrupted the build of that
pattern, so that a later run builds it again.
"""

# ruff: noqa: ANN401 - TVM's objects have no types

import json
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import IO, Any

from miscompile.targets.tvm.about import ABOUT
from miscompile.targets.tvm.adapter import Tvm
from miscompile.targets.tvm.relax.fragments import PATTERN, RelaxFragment, fragments, sizes_of
from miscompile.targets.tvm.relax.text import TEXT_ERRORS, digest, encode, parse
from miscompile.targets.tvm.relax.transforms import ENDING, read_entry
from miscompile.targets.tvm.relax.vetting import fault, triggered


def granularities() -> dict[str, Any]:
    """Return the granularity of each pass, from the table beside the patterns."""
    text = files("miscompile.patterns").joinpath("data/granularity_tvm.toml").read_text("utf-8")
    return {name: entry["granularity"] for name, entry in tomllib.loads(text).items()}


def pairs(path: Path) -> Iterator[tuple[dict[str, Any], dict[str, str]]]:
    """Yield each module of a file with the passes that changed it, and a test in which each did."""
    modules: dict[str, dict[str, Any]] = {}
    passes: dict[str, dict[str, str]] = {}
    for text in path.read_text("utf-8").splitlines():
        try:
            line = json.loads(text)
        except json.JSONDecodeError:
            continue  # the last line of a crashed process
        if "script" in line:
            modules[line["module"]] = line
        elif line.get("changed"):
            passes.setdefault(line["module"], {}).setdefault(line["pass"], line["test"])
    for key, module in modules.items():
        if key in passes:
            yield module, passes[key]


class TvmFragmentLibrary:
    """A folder of patterns, each in a file, and the log of the vetting."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, log = folder, folder / "vetted.jsonl"
        self._files: dict[str, Path] = {}
        for file in folder.glob(f"*{ENDING}"):
            with suppress(ValueError):  # damaged files do not count
                self._files[read_entry(file)["digest"]] = file
        self.known = looked_at(log.read_text("utf-8")) if log.exists() else set()
        self._target = Tvm()
        self._log: IO[str] = log.open("a", encoding="utf-8")

    def note(self, **line: str | int) -> None:
        """Write a line of the log and flush it."""
        self._log.write(json.dumps(line) + "\n")
        self._log.flush()

    def add(self, piece: RelaxFragment, passes: dict[str, str]) -> None:
        """Add a pattern to the library if it passes the vetting; if it is there already, add its passes."""
        key = digest(piece.module)
        if key in self._files:
            entry = read_entry(self._files[key])
            _put(self._files[key], {**entry, "passes": sorted({*entry["passes"], *passes})})
        elif key not in self.known:
            self.known.add(key)
            self.note(begun=key)
            why = self._written(piece, key, passes)
            self.note(ended=key, why=why)

    def _written(self, piece: RelaxFragment, key: str, passes: dict[str, str]) -> str:
        try:
            encoded = encode(piece.module)
            several = encoded["script"].count("@R.function") > 1
            if (several or encoded["constants"]) and digest(
                parse(encoded["script"], encoded["constants"], False)
            ) != key:
                return "reads back as another"  # modules without either always parse back
        except TEXT_ERRORS:
            return "cannot be encoded"
        why = fault(piece.module, self._target)
        if why:
            return why
        first = min(passes)
        function = piece.module[PATTERN]
        entry = {
            "name": f"{first}-{key[:8]}", "digest": key, "granularity": piece.granularity, "passes": sorted(passes),
            "wakes": triggered(piece.module, {*passes, *ABOUT.passes}), "origin": passes[first],
            "operators": piece.operators, "holes": [typed(param.ty) for param in function.params],
            "outputs": [typed(kind) for kind in function.ret_ty.fields], **encoded,
        }  # fmt: skip
        file = self._folder / f"{entry['name']}{ENDING}"
        _put(file, entry)
        self._files[key] = file
        return ""


def _put(file: Path, entry: Mapping[str, Any]) -> None:
    """Write a pattern's file atomically, because other processes read the library, and this one may be killed."""
    fresh = file.with_name(f"{file.name}.new")
    fresh.write_text(json.dumps(entry, indent=1), "utf-8")
    fresh.replace(file)


def looked_at(log: str) -> set[str]:
    """Return the digests of the patterns that were built, or that crashed a process."""
    known: set[str] = set()
    for text in log.splitlines():
        try:
            line = json.loads(text)
        except json.JSONDecodeError:
            continue  # a truncated last line of a killed process, and the newline that separates it from the next
        known.discard(line.get("stopped", ""))
        known |= {line[key] for key in ("begun", "ended") if key in line}
    return known


def typed(kind: Any) -> str:
    """Return a tensor's type as text: `float32[2x3]`."""
    return f"{kind.dtype}[{'x'.join(map(str, sizes_of(kind) or ()))}]"


def main(path: Path, folder: Path) -> None:
    """Extract the patterns of one file of pairs."""
    table, library, size = granularities(), TvmFragmentLibrary(folder), path.stat().st_size
    for encoded, passes in pairs(path):
        try:
            module = parse(encoded["script"], encoded["constants"], False)
        except TEXT_ERRORS:
            library.note(refused="cannot be read back")
            continue
        if digest(module) != encoded["module"]:
            library.note(refused="reads back as another")
            continue
        for granularity in ("block", "subgraph"):
            meant = {name: test for name, test in passes.items() if table.get(name, "subgraph") == granularity}
            if not meant:
                continue
            try:
                for piece in fragments(module, granularity):
                    if isinstance(piece, RelaxFragment):
                        library.add(piece, meant)
                    else:
                        library.note(refused=piece.why)
            except TEXT_ERRORS as error:
                library.note(refused=f"not taken apart: {type(error).__name__}")
    library.note(done=path.stem, bytes=size)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

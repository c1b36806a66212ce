"""Libraries: patterns in one text file that a person can read, edit and compare with an older one.

    miscompile patterns, format 1

    pattern "gelu/1" block
      origin "tests/test_fusions.py::test_gelu"
      wakes "onnxruntime" "1.22.0" "GeluFusion"
      motif
        [gelu]
        x = value(..., N)
        ...
      seed "test_gelu.onnx/1"
        range %x -3.0 3.0
        range %i 0 5 integral
        graph pinned() -> () { ... }      the inputs with fixed elements, as constants of a graph without nodes
        ir 10 ...                         the graph, in the text form of models
    end

`origin` and `wakes` may be missing, and so may one of the two forms. Elements of constants are exact to the bit, so
are the ranges. A line that begins with a hash, between patterns, is a comment.
"""

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast, get_args

from miscompile.base.errors import InputError, ModelError, SpecError, write_error
from miscompile.core.tensor import Tensor
from miscompile.graph.model import Graph, Model
from miscompile.graph.text.lexer import Cursor, quote, value_name
from miscompile.graph.text.parser import parse_graph, parse_model
from miscompile.graph.text.printer import print_graph, print_model
from miscompile.ops.seed import Seed
from miscompile.ops.values import Range
from miscompile.patterns.language import Motif, parse_motifs
from miscompile.patterns.pattern import Granularity, Pattern, Trigger
from miscompile.patterns.print import print_motif
from miscompile.patterns.vetting import vet_seed, vet_statement

HEAD = "miscompile patterns, format 1"
"""The first line of a library."""

_IR_VERSION = 10
_STEP = "  "
_PINNED = "pinned"
_PLACE = re.compile(r"^(?:graph text, line |:)(\d+)[,:] ")


def write_library(patterns: Sequence[Pattern], path: Path) -> None:
    """Write `patterns` to the file `path`, which changes at once or not at all.

    Raises StoreError when it cannot be written.
    """
    text = "\n".join([f"{HEAD}\n", *map(print_pattern, patterns)])
    unready = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        unready.write_text(text, "utf-8")
        os.replace(unready, path)
    except OSError as error:
        unready.unlink(missing_ok=True)
        raise write_error(f"patterns to {path}", error) from None


def read_library(path: Path, *, vetted: bool = True) -> tuple[Pattern, ...]:
    """Return the patterns in the file `path`, in their order.

    Raises InputError that names file and line when it cannot be read, or is damaged, and with `vetted` when a form of
    some pattern is none that can be placed: a graph that breaks ONNX's rules, a call that no opset has.
    """
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise InputError(f"cannot read patterns from {path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is no library of patterns: {error.reason} at byte {error.start}") from None
    return tuple(read_entries(text, path, vetted=vetted))


def read_entries(text: str, path: Path, *, vetted: bool = True) -> Iterator[Pattern]:
    """Yield the patterns in `text`, which is that of the file `path`. Raises InputError as `read_library` does."""
    lines = text.split("\n")
    if lines[0].rstrip() != HEAD:
        raise InputError(f"{path}:1: this is no library of patterns, which begins with '{HEAD}'")
    for entry in _entries(lines, path):
        yield _pattern(entry, path, vetted=vetted)


def print_pattern(pattern: Pattern) -> str:
    """Return the entry of one pattern; it ends with a newline."""
    lines = [f"pattern {quote(pattern.name)} {pattern.granularity}"]
    if pattern.origin:
        lines.append(f"{_STEP}origin {quote(pattern.origin)}")
    lines += [f"{_STEP}wakes {' '.join(map(quote, trigger))}" for trigger in pattern.triggers]
    if pattern.motif is not None:
        lines += [f"{_STEP}motif", *_indented(print_motif(pattern.motif))]
    if pattern.seed is not None:
        lines += [f"{_STEP}seed {quote(pattern.seed.source)}", *_indented(_concrete(pattern.seed))]
    return "\n".join([*lines, "end"]) + "\n"


def _concrete(seed: Seed) -> str:
    spans = [
        f"range {value_name(name)} {span.lo!r} {span.hi!r}{' integral' if span.integral else ''}\n"
        for name, span in seed.ranges.items()
    ]
    pinned = print_graph(Graph(_PINNED, (), (), (), seed.pinned)) + "\n" if seed.pinned else ""
    return "".join(spans) + pinned + print_model(Model(seed.graph, {"": seed.opset}, (), _IR_VERSION))


def _indented(text: str) -> list[str]:
    return [f"{_STEP}{_STEP}{line}" if line else "" for line in text.rstrip("\n").split("\n")]


@dataclass(slots=True)
class _Entry:
    """The lines of one pattern: its head, its settings, and its forms; each block with the number before its first."""

    start: int
    head: str
    motif: tuple[int, list[str]] | None = None
    seed: tuple[int, list[str]] | None = None
    settings: list[tuple[int, str]] = field(default_factory=list)


def _entries(lines: Sequence[str], path: Path) -> Iterator[_Entry]:
    """Part the lines into entries. Raises InputError."""
    entry: _Entry | None = None
    block: list[str] | None = None
    for number, line in enumerate(lines[1:], 2):
        if entry is None:
            if line.startswith("pattern "):
                entry, block = _Entry(number, line), None
            elif line.strip() and not line.startswith("#"):
                raise _damaged(path, number, "a pattern is expected")
        elif line.rstrip() == "end":
            yield entry
            entry = None
        elif block is not None and (not line.strip() or line.startswith(_STEP * 2)):
            block.append(line[4:])
        else:
            block = _section(entry, number, line, path)
    if entry is not None:
        raise _damaged(path, len(lines), f"the pattern that begins in line {entry.start} has no end")


def _section(entry: _Entry, number: int, line: str, path: Path) -> list[str] | None:
    """Take a line that begins a section; return the list that its block goes to, None for a setting."""
    word = line.strip().partition(" ")[0]
    if not line.startswith(_STEP) or word not in ("origin", "wakes", "motif", "seed"):
        raise _damaged(path, number, "origin, wakes, motif, seed or end is expected")
    block: list[str] = []
    if word == "motif" and entry.motif is None:
        entry.motif = number, block
    elif word == "seed" and entry.seed is None:
        entry.seed = number, block
        entry.settings.append((number, line))
    elif word in ("origin", "wakes"):
        entry.settings.append((number, line))
        return None
    else:
        raise _damaged(path, number, f"there is a second {word}")
    return block


def _pattern(entry: _Entry, path: Path, *, vetted: bool) -> Pattern:
    with _as_input_errors(path, entry.start - 1):
        name, granularity = _head(Cursor(entry.head))
    said: dict[str, list[list[str]]] = {"wakes": [], "origin": [], "seed": []}
    for number, line in entry.settings:
        with _as_input_errors(path, number - 1):
            texts = _strings(Cursor(line))
        word = line.split()[0]
        if len(texts) != (len(Trigger._fields) if word == "wakes" else 1):
            raise _damaged(path, number, f"{word} is followed by {len(texts)} texts")
        said[word].append(texts)
    motif = None if entry.motif is None else _motif(*entry.motif, path, vetted=vetted)
    seed = None if entry.seed is None else _seed(*entry.seed, said["seed"][0][0], path, vetted=vetted)
    if motif is None and seed is None:
        raise _damaged(path, entry.start, f"pattern {name} has neither form")
    origin = said["origin"][-1][0] if said["origin"] else ""
    return Pattern(name, seed, motif, granularity, tuple(Trigger(*trigger) for trigger in said["wakes"]), origin)


def _head(cursor: Cursor) -> tuple[str, Granularity]:
    cursor.expect("pattern")
    name = cursor.expect_kind("string", "the pattern's name in quotes")
    token = cursor.token
    granularity = cursor.name("the granularity")
    if granularity not in get_args(Granularity):
        raise cursor.error(f"expected {' or '.join(get_args(Granularity))} but found {granularity!r}", token)
    _ended(cursor)
    return name, cast(Granularity, granularity)


def _strings(cursor: Cursor) -> list[str]:
    """Return the quoted texts that follow a word."""
    cursor.take()
    said: list[str] = []
    while cursor.token.kind != "end":
        said.append(cursor.expect_kind("string", "a text in quotes"))
    return said


def _motif(number: int, lines: Sequence[str], path: Path, *, vetted: bool) -> Motif:
    with _as_input_errors(path, number):
        found = list(parse_motifs("\n".join(lines), "", vet_statement if vetted else None))
    if len(found) != 1:
        raise _damaged(path, number, f"one motif is expected here, not {len(found)}")
    return found[0]


def _seed(number: int, lines: Sequence[str], source: str, path: Path, *, vetted: bool) -> Seed:
    """Return the seed whose block begins after line `number` of the file."""
    ranges: dict[str, Range] = {}
    place = 0
    while place < len(lines) and lines[place].startswith("range "):
        with _as_input_errors(path, number + place):
            name, span = _range(Cursor(lines[place]))
        ranges[name] = span
        place += 1
    pinned: Mapping[str, Tensor] = {}
    if place < len(lines) and lines[place].startswith(f"graph {_PINNED}("):
        end = next((end for end in range(place, len(lines)) if lines[end] == "}"), len(lines))
        with _as_input_errors(path, number + place):
            pinned = parse_graph(Cursor("\n".join(lines[place : end + 1]))).initializers
        place = end + 1
    with _as_input_errors(path, number + place):
        model = parse_model("\n".join(lines[place:]))
    if model.functions or set(model.opsets) != {""}:
        raise _damaged(path, number, "a seed has one opset, and no functions")
    seed = Seed(source, model.graph, model.opset, ranges, pinned)
    if vetted:
        with _as_input_errors(path, number + place):
            vet_seed(seed)
    return seed


def _range(cursor: Cursor) -> tuple[str, Range]:
    cursor.expect("range")
    name = cursor.value()
    lo, hi = (_number(cursor) for _ in range(2))
    integral = cursor.accept("integral")
    _ended(cursor)
    return name, Range(lo, hi, integral)


def _number(cursor: Cursor) -> float:
    token = cursor.token
    text = cursor.expect_kind("number", "a number")
    try:
        number = float(text)
        return int(text) if text.lstrip("-").isdigit() and math.isfinite(number) else number
    except ValueError:
        raise cursor.error(f"{text} is no number", token) from None


def _ended(cursor: Cursor) -> None:
    if cursor.token.kind != "end":
        raise cursor.error("expected the end of the line")


def _damaged(path: Path, number: int, message: str) -> InputError:
    return InputError(f"{path}:{number}: {message}")


@contextmanager
def _as_input_errors(path: Path, before: int) -> Iterator[None]:
    """Turn the errors of a parser into InputErrors; its text begins after line `before` of the file."""
    try:
        yield
    except (ModelError, SpecError) as error:
        found = _PLACE.match(str(error))
        number = before + (int(found[1]) if found else 1)
        raise _damaged(path, number, str(error)[found.end() if found else 0 :]) from None

"""Libraries of patterns: every bit survives, people can read them, and damage is told with file and line."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from motif_strategies import motifs, words

from miscompile.base.dtypes import DTYPES, PLAIN
from miscompile.base.errors import StoreError
from miscompile.core.tensor import Tensor
from miscompile.graph.equality import difference
from miscompile.graph.model import Attribute, Graph, Node, TensorType, ValueInfo
from miscompile.ops.seed import Seed
from miscompile.ops.values import Range
from miscompile.patterns.language import parse_motifs
from miscompile.patterns.library import print_pattern, read_library, write_library
from miscompile.patterns.pattern import Pattern, Trigger
from miscompile.patterns.shipped import catalogue
from miscompile.patterns.vetting import sound, vet_statement

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | words.map(str)
ends = st.floats(allow_nan=False) | st.integers(-(2**60), 2**60)


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    """Any bits of any plain type, NaNs with payloads among them."""
    dtype = draw(st.sampled_from(PLAIN))
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=3)))
    info, count = DTYPES[dtype], int(np.prod(shape, dtype=int))
    data = draw(st.binary(min_size=count * info.storage.itemsize, max_size=count * info.storage.itemsize))
    array = np.frombuffer(data, np.uint8 if dtype == "bool" else info.storage).reshape(shape)
    if info.bits < 8:
        array = array & np.uint8((1 << info.bits) - 1)
    return Tensor(dtype, array % 2 == 1 if dtype == "bool" else array)


@st.composite
def seeds(draw: st.DrawFn) -> Seed:
    names = draw(st.lists(texts.filter(bool), min_size=4, max_size=4, unique=True))
    kind = TensorType(draw(st.sampled_from(PLAIN)), (2, 3))
    pinned = {names[1]: draw(tensors())} if draw(st.booleans()) else {}
    nodes = (Node("Sum", (names[0], names[1], names[2]), (names[3],), {"value": Attribute("tensor", draw(tensors()))}),)
    inputs = tuple(ValueInfo(name, kind) for name in names[:2])
    constants = {names[2]: draw(tensors())}
    graph = Graph(draw(texts), inputs, (ValueInfo(names[3], kind),), nodes, constants, types={names[3]: kind})
    spans = {names[0]: Range(draw(ends), draw(ends), draw(st.booleans()))} if draw(st.booleans()) else {}
    return Seed(draw(texts), graph, draw(st.integers(1, 25)), spans, pinned)


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    seed, motif = draw(st.tuples(seeds() | st.none(), motifs() | st.none()).filter(any))
    triggers = tuple(draw(st.lists(st.builds(Trigger, texts, texts, texts), max_size=2)))
    return Pattern(draw(texts), seed, motif, draw(st.sampled_from(["block", "subgraph"])), triggers, draw(texts))


def told_apart(first: Pattern, second: Pattern) -> str | None:
    """Say where two patterns differ."""
    for name in ("name", "motif", "granularity", "triggers", "origin"):
        if getattr(first, name) != getattr(second, name):
            return name
    if first.seed is None or second.seed is None:
        return None if first.seed is second.seed else "seed"
    for name in ("source", "opset", "ranges"):
        if getattr(first.seed, name) != getattr(second.seed, name):
            return name
    if list(first.seed.pinned) != list(second.seed.pinned):
        return "pinned"
    if not all(value.same(second.seed.pinned[name]) for name, value in first.seed.pinned.items()):
        return "pinned elements"
    return difference(first.seed.graph, second.seed.graph)


@given(st.lists(patterns(), max_size=3))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_what_is_written_is_read_back(tmp_path: Path, written: list[Pattern]) -> None:
    path = tmp_path / "some.patterns"
    write_library(written, path)
    read = read_library(path, vetted=False)
    assert [pattern.name for pattern in read] == [pattern.name for pattern in written]
    assert [told_apart(a, b) for a, b in zip(written, read, strict=True)] == [None] * len(written)
    assert list(tmp_path.iterdir()) == [path]


TEXT = """\
miscompile patterns, format 1

# A note.

pattern "relu/1" block
  origin "test_relu"
  wakes "onnxruntime" "1.22.0" "ReluFusion"
  motif
    [relu]
    x = value(..., N)
    y = Relu(x)
    dtypes("float32")
  seed "model.onnx/1"
    range %x -3.0 3.0
    range %s 0 5 integral
    graph pinned() -> () {
      init %p: int64[1] = [2]
    }
    ir 10
    opset 17

    graph slice(%x: float32[2], %p: int64[1]) -> (%y: float32[2]) {
      init %c: float32[1] = [nan]
      %m: float32[2] = Mul(%x, %c)
      %y: float32[2] = Expand(%m, %p)
    }
end
"""


def saved(text: str, folder: Path) -> Path:
    path = folder / "lib.patterns"
    path.write_text(text, "utf-8")
    return path


def test_a_library_reads_like_this(tmp_path: Path) -> None:
    (pattern,) = read_library(saved(TEXT, tmp_path))
    assert (pattern.name, pattern.granularity, pattern.origin) == ("relu/1", "block", "test_relu")
    assert pattern.triggers == (Trigger("onnxruntime", "1.22.0", "ReluFusion"),)
    assert pattern.motif == next(parse_motifs("[relu]\nx = value(..., N)\ny = Relu(x)\ndtypes('float32')", ""))
    seed = pattern.seed
    assert seed is not None
    assert (seed.source, seed.opset, seed.operators) == ("model.onnx/1", 17, ("Mul", "Expand"))
    assert seed.ranges == {"x": Range(-3.0, 3.0, integral=False), "s": Range(0, 5, integral=True)}
    assert isinstance(seed.ranges["s"].lo, int)
    assert seed.pinned["p"].array.tolist() == [2]
    head = TEXT.split("# A note.")[0]
    assert head + print_pattern(pattern) == TEXT.replace("# A note.\n\n", "")


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("miscompile patterns, format 1", "miscompile patterns, format 9", 1, "this is no library of patterns"),
        ("# A note.", "A note.", 3, "a pattern is expected"),
        ('"relu/1" block', '"relu/1" blob', 5, "expected block or subgraph but found 'blob'"),
        ('"relu/1" block', "relu/1 block", 5, "cannot read '/'"),
        ('"relu/1" block', '"relu/1" block 3', 5, "expected the end of the line"),
        ("origin", "origins", 6, "origin, wakes, motif, seed or end is expected"),
        ('"1.22.0" ', "", 7, "wakes is followed by 2 texts"),
        ("[relu]\n", "\n", 8, "one motif is expected here, not 0"),
        ("y = Relu(x)", "y = Relu(z)", 11, "'z' is used before it is bound"),
        ('dtypes("float32")', "dtypes()", 12, "there must be a dtype to choose"),
        ("range %x -3.0 3.0", "range %x -3.0", 14, "expected a number"),
        ("range %s 0", "range %s 0x10", 15, "0x10 is no number"),
        ("int64[1] = [2]", "int64[1] = [2.5]", 17, "2.5"),
        ("float32[1] = [nan]", "float32[1] = [nan, 1]", 23, "has 1 elements, but 2 are given"),
        ("Expand(%m, %p)", "Expand(%m, %p", 26, "expected"),
        ("    opset 17\n", '    opset 17\n    opset "ai.x" 2\n', 13, "a seed has one opset, and no functions"),
        ("end\n", "", 27, "the pattern that begins in line 5 has no end"),
        ("  seed", "  motif\n    [m]\n  seed", 13, "there is a second motif"),
    ],
)
def test_damage_is_told_with_file_and_line(tmp_path: Path, old: str, new: str, line: int, says: str) -> None:
    assert old in TEXT
    path = saved(TEXT.replace(old, new, 1), tmp_path)
    with pytest.raises(StoreError) as caught:
        read_library(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("y = Relu(x)", "y = Fooo(x)", 11, "motif relu: there is no operator 'Fooo' that can be generated"),
        ("y = Relu(x)", "y = Relu(x, x)", 11, "Relu takes at most 1 operands"),
        ("y = Relu(x)", "y, z = Relu(x)", 11, "Relu has at most 1 results"),
        ("y = Relu(x)", "y = Softmax(x, nosuch=3)", 11, "Softmax has no attribute 'nosuch'; there are axis"),
        ("y = Relu(x)", 'y = Softmax(x, axis="a")', 11, "the attribute 'axis' of Softmax is of kind int"),
        ("y = Relu(x)", "y = LSTM(x, activations=(1, 2))", 11, "'activations' of LSTM is of kind strings"),
        ("y = Relu(x)", "y = Reshape(x, ints(9223372036854775808))", 11, "a whole number lies between"),
        ("y = Relu(x)", "y = Softmax(x, axis=9223372036854775808)", 11, "a whole number lies between"),
        ("y = Relu(x)", "y = Add(x, full(1, 3, -2))", 11, "a size is not negative"),
        ("y = Relu(x)", "y = weight(500, 500)", 11, "there are at most 65,536 elements here"),
        ("y = Relu(x)", 'y = numbers((-1,), dtype="uint64")', 11, "a whole number lies between 0 and"),
        ("y = Relu(x)", 'y = numbers((inf,), dtype="int8")', 11, "int8 has whole numbers only"),
        ("x = value(..., N)", "x = value(..., -3)", 10, "a size is not negative"),
        ("x = value(..., N)", f"x = value(..., 1{'0' * 400})", 10, "there are at most 16,777,216 elements here"),
        ("x = value(..., N)", f"x = value(N, lo=0, hi=1{'0' * 400})", 10, "a whole number lies between"),
        ("opset 17", "opset 99", 19, "operator set 99"),
        ("Mul(%x, %c)", "Mul(%x, %nope)", 19, "Mul in the graph uses 'nope', which nothing defines"),
        ("Mul(%x, %c)", "Fooo(%x, %c)", 19, "Fooo"),
        ("(%x: float32[2], %p", "(%x, %p", 19, "'type'"),
        ("-> (%y: float32[2])", "-> (%z: float32[2])", 19, "output 'z' of the graph is not defined by anything"),
        ("%m: float32[2] = Mul(%x", "%m: float32[3] = Mul(%x", 19, "3"),
        ("-> (%y: float32[2])", "-> ()", 19, "a seed has nodes and outputs"),
        ("float32[1] = [nan]", 'string[1] = ["a"]', 19, "string"),
        ("%x -3.0 3.0", "%x 3.0 -3.0", 19, "no number lies in the range of 'x'"),
        ("%s 0 5", f"%s 0 1{'0' * 400}", 19, "no number lies in the range of 's', or it has no ends"),
        ("int64[1] = [2]", "int32[1] = [2]", 19, "pinned 'p' is no input of the type int32[1]"),
    ],
)
def test_a_form_that_could_never_be_placed_is_told_with_file_and_line(
    tmp_path: Path, old: str, new: str, line: int, says: str
) -> None:
    assert old in TEXT
    path = saved(TEXT.replace(old, new, 1), tmp_path)
    assert read_library(path, vetted=False)
    with pytest.raises(StoreError) as caught:
        read_library(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert says in str(caught.value)


@pytest.mark.parametrize("kind", ["float32[N]", "string[2]", "float32[?]"])
def test_holes_are_tensors_of_fixed_sizes(tmp_path: Path, kind: str) -> None:
    head = TEXT.split("  motif")[0] + '  seed "s"\n    ir 10\n    opset 17\n    '
    path = saved(f"{head}graph g(%x: {kind}) -> (%y: {kind}) {{\n      %y = Identity(%x)\n    }}\nend\n", tmp_path)
    with pytest.raises(StoreError, match=r"lib.patterns:9: input 'x' must be a tensor of fixed sizes, and is"):
        read_library(path)


def test_a_seed_that_breaks_the_rules_is_known_before_it_is_written(tmp_path: Path) -> None:
    (whole,) = read_library(saved(TEXT, tmp_path))
    (broken,) = read_library(saved(TEXT.replace("Mul(%x, %c)", "Fooo(%x, %c)"), tmp_path), vetted=False)
    assert whole.seed is not None
    assert broken.seed is not None
    assert sound(whole.seed)
    assert not sound(broken.seed)


def test_what_ships_has_only_calls_that_some_opset_has() -> None:
    for motif in catalogue():
        for statement in motif.statements:
            vet_statement(statement)


def test_a_pattern_without_forms_is_damage(tmp_path: Path) -> None:
    path = saved('miscompile patterns, format 1\n\npattern "p" block\nend\n', tmp_path)
    with pytest.raises(StoreError, match=r"lib.patterns:3: pattern p has neither form"):
        read_library(path)


def test_files_that_cannot_be_read_or_written_are_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot read patterns from"):
        read_library(tmp_path / "absent")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(StoreError, match="binary is no library of patterns"):
        read_library(tmp_path / "binary")
    with pytest.raises(StoreError, match="cannot write patterns to"):
        write_library([], tmp_path / "absent" / "lib")


def test_a_failed_writing_leaves_the_old_library(tmp_path: Path) -> None:
    path = saved(TEXT, tmp_path)
    (pattern,) = read_library(path)
    broken = Pattern("bad", Seed("s", Graph("g", (), (), (), {"w": None}), 17), None, "block")  # type: ignore[dict-item]
    with pytest.raises(AttributeError):
        write_library([pattern, broken], path)
    assert path.read_text("utf-8") == TEXT

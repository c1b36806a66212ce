"""Patterns out of Relax modules and into others: extraction, hazards, splicing, noise, the form, and its script."""

import importlib.util
import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

from miscompile.base.errors import SpecError
from miscompile.base.specs import parse_spec, stored_spec
from miscompile.core.case import Case, Port, Program
from miscompile.core.outcome import Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Tensor, tensor
from miscompile.execution.pool import LocalPool
from miscompile.targets.tvm.relax.splice_transform import ENDING, Splice, chosen, names, spelled, splice_options
from miscompile.triage.inlining import inlined

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.process,
    pytest.mark.skipif(importlib.util.find_spec("tvm") is None, reason="apache-tvm is not installed"),
]

PATTERN = """
@I.ir_module
class Module:
    @R.function
    def pattern(
        hole0: R.Tensor((2, 3), "float32"), hole1: R.Tensor((3, 4), "float32")
    ) -> R.Tuple(R.Tensor((2, 4), "float32")):
        with R.dataflow():
            lv = R.matmul(hole0, hole1)
            lv1 = R.nn.relu(lv)
            result = (lv1,)
            R.output(result)
        return result
"""

ENTRY = {
    "name": "FuseOps-00000000", "digest": "0", "granularity": "subgraph", "passes": ["FuseOps"], "wakes": [],
    "origin": "test_fuse.py::test_relu", "operators": ["matmul", "nn.relu"], "holes": ["float32[2x3]", "float32[3x4]"],
    "outputs": ["float32[2x4]"], "script": PATTERN, "constants": [],
}  # fmt: skip

GRAPH = """
g (float[2,3] a, float[4,4] b) => (float[2,3] y, float[4,4] z) {
    p = Exp(a)  q = Neg(b)  r = Mul(p, a)  s = Abs(q)  y = Tanh(r)  z = Relu(s)
}
"""

CHILD = """
import json, sys
sys.modules.setdefault("torch", None)
import tvm, tvm_ffi
from tvm import relax
from miscompile.targets.tvm.relax import fragments as cut
from miscompile.targets.tvm.relax import hazards
from miscompile.targets.tvm.relax import splice as sewing
from miscompile.targets.tvm.relax import text

def parse(script):
    return relax.transform.Normalize()(text.parse(script, []))
pattern, seed = map(parse, json.loads(sys.stdin.read()))
"""
"""What the scripts below begin with: TVM is imported in processes of their own, never in that of the tests."""

SEED = """
@I.ir_module
class Module:
    @R.function
    def main(
        a: R.Tensor((2, 3), "float32"), b: R.Tensor((4, 4), "float32")
    ) -> R.Tuple(R.Tensor((2, 3), "float32"), R.Tensor((4, 4), "float32")):
        with R.dataflow():
            p = R.exp(a)
            q = R.negative(b)
            r = R.multiply(p, a)
            s = R.abs(q)
            y = R.tanh(r)
            z = R.nn.relu(s)
            out = (y, z)
            R.output(out)
        return out
"""


def told(script: str, pattern: str = PATTERN, seed: str = SEED) -> Any:
    """Run `script` behind CHILD on two modules; return the JSON that it prints."""
    command = [sys.executable, "-c", CHILD + script]
    done = subprocess.run(command, input=json.dumps([pattern, seed]), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def library(tmp_path: Path) -> Path:
    (tmp_path / f"{ENTRY['name']}{ENDING}").write_text(json.dumps(ENTRY), "utf-8")
    return tmp_path


def case() -> Case:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {GRAPH}')
    wide, square = (2, 3), (4, 4)
    inputs = (Port("a", "float32", wide), Port("b", "float32", square))
    outputs = (Port("y", "float32", wide), Port("z", "float32", square))
    feed = tuple(tensor(np.linspace(-1, 1, math.prod(shape)).reshape(shape), "float32") for shape in (wide, square))
    return Case(Program("onnx", model.SerializeToString(), inputs, outputs), (feed,))


def test_splices_are_well_formed_and_joined_to_the_inside_of_the_seed() -> None:
    facts = told("""
found = []
for number in range(40):
    module, facts = sewing.splice(seed, pattern, number, call=number % 4 == 0)
    relax.analysis.well_formed(module)
    text_ = module.script()
    found.append([facts.inner_in, facts.inner_out, facts.exact, facts.bridged, facts.bridged_out, "R.matmul" in text_])
print(json.dumps(found))
""")
    assert all(inner_in and inner_out and there for inner_in, inner_out, _, _, _, there in facts)
    assert any(exact for _, _, exact, *_ in facts), "a hole of [2, 3] finds such a value"
    assert all(bridged for *_, bridged, _, _ in facts), "no value is [3, 4], so that hole needs a bridge"


def test_splicing_depends_on_its_arguments_alone() -> None:
    same, other = told("""
one, two, three = (tvm_ffi.structural_hash(sewing.splice(seed, pattern, number)[0]) for number in (5, 5, 6))
print(json.dumps([one == two, one == three]))
""")
    assert same
    assert not other


def test_of_what_types_in_another_size_the_abstract_form_is_used() -> None:
    relu = PATTERN.replace('hole1: R.Tensor((3, 4), "float32")', 'hole1: R.Tensor((7, 7), "float32")')
    relu = relu.replace("lv = R.matmul(hole0, hole1)", "lv = R.sin(hole1)").replace("(2, 4)", "(7, 7)")
    relaxed, bridged = told(
        """
facts = [sewing.splice(seed, pattern, number)[1] for number in range(10)]
print(json.dumps([sum(one.relaxed for one in facts), sum(one.bridged for one in facts)]))
""",
        relu,
    )
    assert relaxed == 10
    assert not bridged


def test_what_feeds_an_undefined_operation_is_never_rewired() -> None:
    guarded = SEED.replace("s = R.abs(q)", "s = R.take(q, R.argmax(q, axis=1), axis=0)")
    kept = told(
        """
kept = []
for number in range(30):
    module, _ = sewing.splice(seed, pattern, number)
    names = {}
    for block in module["main"].body.blocks:
        for one in block.bindings:
            names[one.var] = one.value
    (taken,) = [one for one in names.values() if getattr(getattr(one, "op", None), "name", "") == "relax.take"]
    source = names[taken.args[0]]
    kept.append(source.op.name == "relax.negative" and names[taken.args[1]].args[0].same_as(taken.args[0]))
print(json.dumps(kept))
""",
        seed=guarded,
    )
    assert all(kept)


def test_fragments_have_holes_and_broken_outputs() -> None:
    found = told("""
found = []
for granularity in ("block", "subgraph"):
    for one in cut.fragments(seed, granularity):
        function = one.module["pattern"]
        found.append([one.granularity, len(function.params), len(function.ret_ty.fields), list(one.operators)])
print(json.dumps(found))
""")
    assert ["block", 2, 2, ["exp", "negative", "multiply", "abs", "tanh", "nn.relu"]] in found
    assert [one for one in found if one[0] == "subgraph"] == [
        ["subgraph", 2, 2, ["exp", "negative", "multiply", "abs", "tanh", "nn.relu"]]
    ], "the tuple of results joins the two"


@pytest.mark.parametrize(
    ("binding", "why"),
    [
        ('lv = R.astype(hole0, "int32")', "a float made an integer"),
        ('lv = R.floor_divide(R.ones((2, 3), "int32"), R.ones((2, 3), "int32"))', "floor_divide of integers"),
        ("lv = R.take(hole0, R.argmax(hole0, axis=0), axis=0)", "take of any values"),
        ("lv = R.nn.dropout(hole0)", "nn.dropout has effects"),
        ("lv = R.exp(hole0)", ""),
    ],
)
def test_hazards(binding: str, why: str) -> None:
    script = PATTERN.replace("lv = R.matmul(hole0, hole1)", binding).replace(
        "lv1 = R.nn.relu(lv)", "lv1 = R.matmul(hole0, hole1)"
    )
    found = told(
        """
block = pattern["pattern"].body.blocks[0]
print(json.dumps([hazards.hazard(one.value, pattern) for one in block.bindings]))
""",
        script,
    )
    assert next(filter(None, found), "") == why


def test_text_keeps_constants() -> None:
    assert told("""
import numpy as np
builder = relax.BlockBuilder()
x = relax.Var("x", relax.TensorType([2, 2], "float32"))
with builder.function("main", [x]):
    one, two = (relax.const(np.full((2, 2), number, "float32")) for number in (1, 2))
    y = builder.emit(relax.op.add(relax.op.multiply(x, two), one))
    builder.emit_func_output(builder.emit(relax.op.add(y, two)))
module = builder.finalize()
said = json.loads(json.dumps(text.encode(module)))
print(json.dumps([len(said["constants"]), text.digest(text.parse(**said)) == text.digest(module)]))
""") == [2, True]


def test_the_transform_parses(library: Path) -> None:
    assert splice_options(parse_spec("relax{seed=3}")) is None
    spec = parse_spec(f"splice{{library={library}, seed=3, call=yes}}")
    assert splice_options(spec) == Splice(str(library), seed=3, call=True)
    assert names(str(library)) == (ENTRY["name"],)
    assert [one["origin"] for one in chosen(Splice(str(library), seed=7))] == [ENTRY["origin"]]
    with pytest.raises(SpecError, match="needs library"):
        splice_options(parse_spec("splice"))
    with pytest.raises(SpecError, match="holds no patterns"):
        names(str(library / "none"))
    with pytest.raises(SpecError, match="no pattern 'x'"):
        chosen(Splice(str(library), ("x",)))


@pytest.mark.parametrize("call", [False, True])
def test_several_patterns_stand_in_one_program(call: bool) -> None:
    found = told(f"""
found = []
for number in range(12):
    module = sewing.splice_all(seed, [pattern, pattern, pattern], number, {call})
    relax.analysis.well_formed(module)
    found.append([module.script().count("R.matmul"), len(module.functions)])
print(json.dumps(found))
""")
    assert found == [[3, 4] if call else [3, 1]] * 12


def test_a_pattern_without_a_place_is_left_out_of_several() -> None:
    overflows = PATTERN.replace("R.nn.relu(lv)", "R.add(lv, lv)").replace(
        "R.matmul(hole0, hole1)", "R.full_like(hole0, BIG)"
    )
    overflows = (
        overflows.replace("float32", "int32").replace("BIG", 'R.const(2147483647, "int32")').replace("(2, 4)", "(2, 3)")
    )
    script = f"overflows = parse({overflows!r})\n"
    script += 'print(json.dumps(sewing.splice_all(seed, [overflows, pattern], 3).script().count("R.matmul")))'
    assert told(script) == 1
    script = script.replace("[overflows, pattern]", "[overflows]")
    assert told(script) == 0


def test_both_builds_of_a_form_agree_and_noise_moves_them(library: Path) -> None:
    form = f"splice{{library={library}, seed=4}}"
    given = case()
    number = Port("number", "int64", ())
    feeds = tuple((*given.feeds[0], tensor(np.asarray(value), "int64")) for value in (0, 1, 7))
    noisy = replace(given, program=replace(given.program, inputs=(*given.program.inputs, number)), feeds=feeds)
    runs = [
        Run(given, "tvm", Build("off", transform=stored_spec(form))),
        Run(given, "tvm", Build("full", transform=stored_spec(form))),
        Run(given, "tvm", Build("off")),
        Run(noisy, "tvm", Build("off", transform=parse_spec(f"{form[:-1]}, noise=yes}}"))),
    ]
    with LocalPool("tvm") as pool:
        off, full, plain, noise = pool.run(runs)
    assert isinstance(off, Values)
    assert isinstance(full, Values)
    assert isinstance(plain, Values)
    assert isinstance(noise, Values)
    for one, other in zip(off.results[0], full.results[0], strict=True):
        assert one is not None
        assert other is not None
        np.testing.assert_allclose(one.array, other.array, rtol=1e-5)
    assert any(not same(one, other) for one, other in zip(off.results[0], plain.results[0], strict=True))
    assert all(same(one, other) for one, other in zip(off.results[0], noise.results[0], strict=True)), "no noise yet"
    for place in (1, 2):
        pairs = list(zip(off.results[0], noise.results[place], strict=True))
        assert any(not same(one, other) for one, other in pairs)
        for one, other in pairs:
            assert one is not None
            assert other is not None
            np.testing.assert_allclose(one.array, other.array, rtol=1e-3, atol=1e-4)


def same(one: Tensor | None, other: Tensor | None) -> bool:
    assert one is not None
    assert other is not None
    return bool(one.array.tobytes() == other.array.tobytes())


def test_the_source_of_a_reproducer_splices(library: Path) -> None:
    from miscompile.targets.tvm.script import SCRIPT

    end = "print(json.dumps(splice_all(script_parser.parse(SEED), patterns(), **SPLICE).script()))"
    form = parse_spec(f"splice{{library={library}, seed=4}}")
    own = f"import json\nSEED = {SEED!r}\n{spelled(form)}\n{end}"
    found = inlined(own, SCRIPT.sources, SCRIPT.imports)
    script = "\n".join(["import sys", 'sys.modules.setdefault("torch", None)', *found.imports, found.text, own])
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "R.matmul" in json.loads(done.stdout.splitlines()[-1])
    assert "miscompile" not in script


def test_a_program_that_is_not_well_formed_stays_as_it_is() -> None:
    """TVM's importer makes some for sizes that it does not know; they are built nevertheless."""
    accepted, kept, refused = told('''
from miscompile.targets.tvm.relax.functions import wrap

text = """
@R.function
def main(x: R.Tensor((2, 3), dtype="float32")) -> R.Tensor((2, 3), dtype="float32"):
    y = R.add(x, x)
    z = R.print(y, format="y")
    w = R.add(y, y)
    return w
"""
main = tvm.script.from_source(text, {"R": tvm.script.relax}, check_well_formed=False)
module = tvm.IRModule({"main": main})
try:
    sewing.splice(module, pattern)
    refused = False
except sewing.NoPlaceError:
    refused = True
print(json.dumps([relax.analysis.check_well_formed(module), wrap(module, 1).same_as(module), refused]))
''')
    assert not accepted
    assert kept
    assert refused


def test_every_hole_that_is_filled_from_inside_gets_what_depends_on_an_input() -> None:
    """Of what stands on constants alone the compiler makes constants, and of the pattern on it as well."""
    counts = told(
        """
counts = []
for number in range(30):
    module, facts = sewing.splice(seed, pattern, number)
    body = module["main"].body.blocks[0].bindings if len(module["main"].body.blocks) == 1 else []
    fixed = {"c", "d"}
    for one in body:
        used = {var.name for var in relax.analysis.free_vars(one.value)}
        if used & fixed:
            fixed.add(one.var.name)
    counts.append([facts.inner_in, "lv" in fixed])
print(json.dumps(counts))
""",
        seed="""
@I.ir_module
class Module:
    @R.function
    def main(a: R.Tensor((2, 3), "float32")) -> R.Tuple(R.Tensor((2, 3), "float32"), R.Tensor((3, 4), "float32")):
        with R.dataflow():
            c = R.zeros((2, 3), "float32")
            d = R.exp(c)
            p = R.exp(a)
            e = R.ones((3, 4), "float32")
            y = R.tanh(p)
            z = R.add(d, y)
            out = (z, e)
            R.output(out)
        return out
""",
    )
    assert all(inner for inner, _ in counts)
    assert not any(folded for _, folded in counts)


def test_nothing_is_spliced_where_a_pattern_could_lead_nowhere() -> None:
    """The results of a pattern that takes no operand's place are dead code, which the first pass removes."""
    refused = told(
        """
try:
    sewing.splice(seed, pattern)
    print("null")
except sewing.NoPlaceError as error:
    print(json.dumps(str(error)))
""",
        seed="""
@I.ir_module
class Module:
    @R.function
    def main(a: R.Tensor((2, 3), "int32"), b: R.Tensor((2, 3), "int32")) -> R.Tensor((2, 3), "int32"):
        with R.dataflow():
            p = R.abs(a)
            y = R.floor_divide(p, b)
            R.output(y)
        return y
""",
    )
    assert "no operand" in refused


def test_noise_moves_programs_of_one_result_as_well(library: Path) -> None:
    """The importer gives a tensor for one output, and a tuple for several."""
    text = GRAPH.replace("(float[2,3] y, float[4,4] z)", "(float[2,3] y)").replace("z = Relu(s)", "")
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {text}')
    plain = case()
    inputs = (*plain.program.inputs, Port("number", "int64", ()))
    feeds = tuple((*plain.feeds[0], tensor(np.asarray(value), "int64")) for value in (0, 7))
    given = Case(Program("onnx", model.SerializeToString(), inputs, plain.program.outputs[:1]), feeds)
    form = f"splice{{library={library}, seed=4, noise=yes}}"
    with LocalPool("tvm") as pool:
        for level in ("off", "full"):
            (found,) = pool.run([Run(given, "tvm", Build(level, transform=stored_spec(form)))])
            assert isinstance(found, Values), found
            (still,), (moved,) = found.results
            assert still is not None
            assert moved is not None
            assert not same(still, moved)
            np.testing.assert_allclose(still.array, moved.array, rtol=1e-3, atol=1e-4)

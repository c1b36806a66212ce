"""No integer of a spliced program leaves its type: what comes into a pattern, and what goes back into the seed."""

import importlib.util
import json
import subprocess
import sys
from typing import Any

import pytest

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.process,
    pytest.mark.skipif(importlib.util.find_spec("tvm") is None, reason="apache-tvm is not installed"),
]

SEED = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3), "int32")) -> R.Tuple(R.Tensor((2, 3), "int32"), R.Tensor((2, 3), "bool")):
        with R.dataflow():
            a = R.multiply(x, x)
            b = R.multiply(a, a)
            e = R.multiply(b, b)
            c = R.add(e, x)
            d = R.maximum(c, x)
            w = R.astype(d, "bool")
            out = (d, w)
            R.output(out)
        return out
"""
"""With x from -5 to 5 all is below 2**30, as the generator promises; a square of that is beyond 32 bits."""

PATTERN = """
@I.ir_module
class Module:
    @R.function
    def pattern(hole0: R.Tensor((2, 3), "int32")) -> R.Tuple(R.Tensor((2, 3), "bool")):
        with R.dataflow():
            s = R.multiply(hole0, hole0)
            g = R.greater_equal(s, R.const(0, "int32"))
            result = (g,)
            R.output(result)
        return result
"""

LOOPS = """
@I.ir_module
class Module:
    @T.prim_func(private=True, s_tir=True)
    def loops(x: T.Buffer((T.int64(2), T.int64(3)), "int32"), y: T.Buffer((T.int64(2), T.int64(3)), "int32")):
        for i, j in T.grid(T.int64(2), T.int64(3)):
            with T.sblock("y"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                BODY

    @R.function
    def pattern(hole0: R.Tensor((2, 3), "int32")) -> R.Tuple(R.Tensor((2, 3), "int32")):
        cls = Module
        with R.dataflow():
            lv = R.call_tir(cls.loops, (hole0,), out_ty=R.Tensor((2, 3), "int32"))
            result = (lv,)
            R.output(result)
        return result
"""

CHILD = """
import json, sys
sys.modules.setdefault("torch", None)
import numpy as np, tvm
from tvm import relax
from miscompile.core.run import Build
from miscompile.targets.tvm.relax import hazards
from miscompile.targets.tvm.relax import loops
from miscompile.targets.tvm.relax import ranges
from miscompile.targets.tvm.relax import splice as sewing
from miscompile.targets.tvm.relax import text
from miscompile.targets.tvm.adapter import Tvm

def parse(script):
    return relax.transform.Normalize()(text.parse(script, []))

def lawful(module):
    own = module["pattern"]
    return sewing.lawful(relax.BlockBuilder(module), own, [one.ty for one in own.params])

def run(module, level, *feed):
    machine = relax.VirtualMachine(Tvm().compiled(module, Build(level)), tvm.cpu())
    return [one.numpy() for one in machine["main"](*map(tvm.runtime.tensor, feed))]

def bindings(module, name):
    return [one for block in module[name].body.blocks for one in block.bindings]
pattern, seed = map(parse, json.loads(sys.stdin.read()))
"""
"""What the scripts below begin with: TVM is imported in processes of their own, never in that of the tests."""


def told(script: str, pattern: str = PATTERN, seed: str = SEED) -> Any:
    """Run `script` behind CHILD on two modules; return the JSON that it prints."""
    command = [sys.executable, "-c", CHILD + script]
    done = subprocess.run(command, input=json.dumps([pattern, seed]), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def of_one(operation: str, result: str = '(2, 3), "int32"', hole: str = '(2, 3), "int32"') -> str:
    """Return a pattern of one operation on `hole0`."""
    return f"""
@I.ir_module
class Module:
    @R.function
    def pattern(hole0: R.Tensor({hole})) -> R.Tuple(R.Tensor({result})):
        with R.dataflow():
            lv = {operation}
            result = (lv,)
            R.output(result)
        return result
"""


def test_integers_that_come_into_a_pattern_are_small_enough_for_it() -> None:
    same, kinds = told(
        """
feed = np.array([[5, -5, 4], [3, -4, 5]], np.int32)
same, kinds = [], []
for number in range(24):
    module, _ = sewing.splice(seed, pattern, number)
    results = [run(module, level, feed) for level in ("off", "native")]
    same.append(all((one == other).all() for one, other in zip(*results)))
    squares = [one for one in bindings(module, "main") if one.var.name_hint == "s"]
    values = {one.var: one.value for one in bindings(module, "main")}
    kinds += [getattr(getattr(values.get(one.value.args[0]), "op", None), "name", "none") for one in squares]
print(json.dumps([same, kinds]))
""".replace(".var.name_hint", ".var.name")
    )
    assert all(same)
    assert set(kinds) == {"relax.clip"}, "a square of up to 2**30 is never taken"


def test_integers_of_a_called_pattern_are_small_too() -> None:
    assert (
        told("""
clips = []
for number in range(8):
    module, _ = sewing.splice(seed, pattern, number, call=True)
    values = {one.var: one.value for one in bindings(module, "main")}
    (call,) = [one for one in values.values() if isinstance(getattr(one, "op", None), tvm.ir.GlobalVar)]
    clips.append(values[call.args[0]].op.name)
print(json.dumps(clips))
""")
        == ["relax.clip"] * 8
    )


@pytest.mark.parametrize(
    ("operation", "result", "bound"),
    [
        ("R.multiply(hole0, hole0)", '(2, 3), "int32"', 100),
        ("R.prod(hole0)", '(), "int32"', 10),
        ("R.cumprod(R.reshape(hole0, (6,)), axis=0)", '(6,), "int32"', 10),
        ('R.sum(R.astype(hole0, "int8"))', '(), "int8"', 10),
        ('R.prod(R.astype(hole0, "int8"))', '(), "int8"', 1),
        ('R.subtract(R.astype(hole0, "uint8"), R.const(1, "uint8"))', '(2, 3), "uint8"', None),
        ('R.add(hole0, R.const(2147483647, "int32"))', '(2, 3), "int32"', None),
        ('R.astype(hole0, "bool")', '(2, 3), "bool"', 100),
        ("R.mean(hole0)", '(), "int32"', None),
    ],
)
def test_how_small_the_integers_of_a_pattern_must_be(operation: str, result: str, bound: int | None) -> None:
    script = of_one(operation, result)
    assert told("print(json.dumps(lawful(pattern)))", script) == bound


@pytest.mark.parametrize(
    ("body", "bound", "why"),
    [
        ("y[v_i, v_j] = x[v_i, v_j] * x[v_i, v_j] * x[v_i, v_j]", 100, ""),
        ("y[v_i, v_j] = x[v_i, v_j] + T.int32(2147483647)", None, ""),
        ("y[v_i, v_j] = T.Select(x[v_i, v_j] * T.int32(30000000) > 0, 1, 2)", 10, ""),
        ("y[v_i, v_j] = x[v_i, v_j] << 2", None, "loops that shift"),
        (
            "z: T.let[T.int32] = x[v_i, v_j]\n                y[v_i, v_j] = x[v_i, z]",
            None,
            "loops with computed indices",
        ),
    ],
)
def test_how_small_the_integers_of_loops_must_be(body: str, bound: int | None, why: str) -> None:
    found, hazard = told(
        'print(json.dumps([lawful(pattern), hazards.loop_hazard(pattern["loops"])]))', LOOPS.replace("BODY", body)
    )
    assert hazard == why
    if not why:
        assert found == bound


def test_loops_that_sum_integers_up_are_refused() -> None:
    body = (
        "with T.init():\n                    y[v_i, v_j] = 0\n                y[v_i, v_j] = y[v_i, v_j] + x[v_i, v_j]"
    )
    assert told("print(json.dumps(lawful(pattern)))", LOOPS.replace("BODY", body)) is None


def test_no_pattern_is_taken_out_whose_integers_may_overflow() -> None:
    assert told(
        """
from miscompile.targets.tvm.relax.fragments import fragments
print(json.dumps([getattr(one, "why", "") for one in fragments(pattern, "block")]))
""",
        of_one('R.add(hole0, R.const(2147483647, "int32"))'),
    ) == ["integers that may overflow"]


def test_a_result_goes_only_where_the_seed_stays_within_its_types() -> None:
    """The seed multiplies values that the generator knows to be small; a result of the pattern must not join them."""
    script = of_one("R.maximum(hole0, hole0)")
    seen = told(
        """
seen = []
for number in range(40):
    module, facts = sewing.splice(seed, pattern, number)
    values = {one.var: one.value for one in bindings(module, "main")}
    ours = {one for one in values if one.name in ("lv", "bridge")}
    for one in values.values():
        if getattr(getattr(one, "op", None), "name", "") in ("relax.multiply", "relax.add"):
            seen.append(not any(arg in ours for arg in one.args))
print(json.dumps(seen))
""",
        script,
    )
    assert all(seen), "nothing says how large the other operand is"


def test_a_result_may_meet_what_is_known_to_be_small() -> None:
    sums = told(
        """
sums = []
for number in range(20):
    module, facts = sewing.splice(seed, pattern, number)
    sums.append(facts.inner_out)
print(json.dumps(sums))
""",
        of_one("R.maximum(hole0, hole0)"),
        """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3), "int32")) -> R.Tensor((2, 3), "int32"):
        with R.dataflow():
            a = R.sign(x)
            b = R.add(a, a)
            c = R.multiply(b, R.const(7, "int32"))
            R.output(c)
        return c
""",
    )
    assert all(sums)


def test_what_is_kept_small_and_converted_has_the_same_value() -> None:
    """A clip comes before a conversion: the other way round a wide number would be cut into a narrow type first."""
    order = told(
        """
order = []
for number in range(6):
    module, _ = sewing.splice(seed, pattern, number)
    own = [one.value.op.name for one in bindings(module, "main") if hasattr(one.value, "op")]
    order.append(own.index("relax.clip") < own.index("relax.astype"))
print(json.dumps(order))
""",
        of_one("R.negative(hole0)", '(2, 3), "int8"', '(2, 3), "int8"'),
        SEED.replace('            w = R.astype(d, "bool")\n', "            w = R.greater(d, x)\n"),
    )
    assert all(order)


def test_the_proof_follows_every_integer_through_wide_arithmetic() -> None:
    """All integers that a spliced program computes are held against the same arithmetic without bounds."""
    wrong = told(
        """
from miscompile.targets.tvm.relax.seams import replaced
WIDE = {"relax.add": lambda a, b: a + b, "relax.multiply": lambda a, b: a * b, "relax.subtract": lambda a, b: a - b}
feed = np.array([[5, -5, 4], [3, -4, 5]], np.int32)
wrong = []
for number in range(12):
    module, _ = sewing.splice(seed, pattern, number)
    values = bindings(module, "main")
    place = module.get_global_var("main")
    shown = [one.var for one in values if isinstance(one.var.ty, relax.TensorType)]
    new = {one: relax.Var(one.name, one.ty) for one in shown}
    bound = [relax.VarBinding(new[one.var], replaced(one.value, new)) for one in values if one.var in new]
    result = relax.Var("all", relax.TupleType([one.ty for one in shown]))
    bound.append(relax.VarBinding(result, relax.Tuple(list(new.values()))))
    main = module["main"]
    body = relax.SeqExpr([relax.BindingBlock(bound)], result)
    module.update_func(place, relax.Function(main.params, body, result.ty, True, main.attrs))
    found = dict(zip(shown, run(relax.transform.Normalize()(module), "off", feed)))
    found[main.params[0]] = feed
    for one in values:
        op = getattr(getattr(one.value, "op", None), "name", "")
        if op in WIDE:
            exact = WIDE[op](*(found[arg].astype(object) for arg in one.value.args))
            wrong.append(int((exact != found[one.var]).sum()))
print(json.dumps(wrong))
""",
        of_one("R.multiply(R.multiply(hole0, hole0), hole0)"),
    )
    assert wrong
    assert not any(wrong)


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("tirx.Evaluate(part * part)", "vectors"),
        ("tirx.Evaluate(one * one)", ""),
    ],
)
def test_loops_that_nothing_follows_are_not_trusted(statement: str, why: str) -> None:
    """Nothing proves that the lanes of a vector stay within their type."""
    script = f"""
from tvm import tirx
from miscompile.targets.tvm.relax.intervals import OverflowsError
block = tirx.decl_buffer((8,), "int32")
part, one = tirx.BufferLoad(block, [tirx.Ramp(0, 1, 4)]), tirx.BufferLoad(block, [0])
try:
    loops.parts_of({statement})
    print(json.dumps(""))
except OverflowsError as error:
    print(json.dumps(str(error)))
"""
    done = subprocess.run(
        [sys.executable, "-c", CHILD.partition("def parse")[0] + script],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert why in json.loads(done.stdout.splitlines()[-1]) if why else done.stdout.splitlines()[-1] == '""'

from dataclasses import replace

import pytest

from miscompile.base.messages import normalise
from miscompile.core.case import Case, Program
from miscompile.core.finding import Signature
from miscompile.core.outcome import Crashed, Observations, OutOfMemory, Raised, TimedOut, Unsupported, Values
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Evidence
from miscompile.graph.attributes import attributes
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.triage.signature import (
    HEAP,
    Symptom,
    canonical_form,
    frames_of,
    placeless,
    signature_of,
    similar,
    symptom_of,
)

RUN = Run(Case(Program("onnx", b"", (), ()), ()), "toy{bugs=none}", Build())
WRONG = Evidence("wrong", "exact", "output 'y' differs", RUN, RUN, "y")


STDERR = {
    "#0 0x55d1 in onnxruntime::Foo::Apply(onnxruntime::Graph&) /src/a.cc:12\n#1 0x55d2 in main b.cc:3\n": (
        "onnxruntime::Foo::Apply",
        "main b.cc:3",
    ),
    "/lib/libort.so(_ZN3FooEv+0x12)[0x7f]\n/lib/libc.so(abort+0x1)[0x7e]\n": ("_ZN3FooEv", "abort"),
    'Fatal Python error: Segmentation fault\n  File "/tmp/a.py", line 3 in run\n': ("run",),
    "  0: tvm::relax::Fold(tvm::Expr)\n  1: tvm::Build()\n": ("tvm::relax::Fold", "tvm::Build"),
    "nothing at all": (),
}


@pytest.mark.parametrize("stderr", STDERR)
def test_frames_are_read_from_backtraces(stderr: str) -> None:
    assert frames_of(stderr) == STDERR[stderr]


def death(stderr: str, signal: int = 11) -> Symptom:
    evidence = replace(WRONG, kind="death")
    return symptom_of(evidence, Crashed("compile", signal, Observations(stderr=stderr)))


def test_deaths_are_told_apart_by_signal_and_innermost_frame() -> None:
    first, second = death("#0 0x1 in Fold(int)\n#1 0x2 in Run()"), death("#0 0x9 in Fold(long)\n#1 0x3 in Walk()")
    other, blind = death("#0 0x1 in Fuse()"), death("")
    assert similar(first, second)
    assert not similar(first, other)
    assert similar(first, blind)
    assert not similar(blind, death("", 6))


def test_a_damaged_heap_is_one_symptom_whenever_and_however_it_shows() -> None:
    early, late = death("free(): invalid next size (fast)", 6), death("malloc_consolidate(): invalid chunk", 6)
    assert early == late == Symptom("death", "compile", f"signal 6: {HEAP}")
    assert similar(early, replace(late, stage="run"))
    assert similar(early, replace(death("#0 0x1 in Fold(int)"), stage="collect"))
    assert not similar(early, death("", 8))
    assert not similar(early, death("LLVM ERROR: cannot select", 6))


PANIC = (
    "thread '<unnamed>' (31) panicked at {}:72:23:\n{}\nnote: run with `RUST_BACKTRACE=1` environment variable\n"
    'Fatal Python error: Aborted\n  File "/a/runner.py", line 3 in evaluate\n'
)
HOME = "/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f"


def test_panics_are_told_apart_by_message_and_file_without_line_and_release() -> None:
    gather = death(PANIC.format("core/src/ops/array/gather_nd.rs", "assertion failed: index < 4"), 6)
    assert gather.text == "signal 6: assertion failed: index < # in core/ops/array/gather_nd.rs"
    other = death(PANIC.format("core/src/ops/array/pad.rs", "assertion failed: index < 4"), 6)
    assert not similar(gather, other)
    bound = [death(PANIC.format(f"{HOME}/ndarray-0.{n}.2/src/lib.rs", "out of bounds"), 6).text for n in (16, 17)]
    assert bound == ["signal 6: out of bounds in ndarray/lib.rs"] * 2


def test_only_the_last_panic_counts_and_only_for_an_abort() -> None:
    caught, last = (PANIC.format("core/src/a.rs", "caught"), PANIC.format("core/src/b.rs", "not caught"))
    assert death(caught + last, 6).text == "signal 6: not caught in core/b.rs"
    assert death(caught, 11).text == "signal 11 in evaluate"


def test_symptoms_of_every_outcome() -> None:
    assert symptom_of(WRONG, Values(())) == Symptom("wrong", "", "")
    assert symptom_of(WRONG, None) == Symptom("wrong", "", "")
    raised = replace(WRONG, kind="exception")
    assert symptom_of(raised, Raised("run", "Fail", "bad 7")) == Symptom("exception", "run", "Fail: bad #")
    assert symptom_of(raised, Unsupported("compile", "no 7")) == Symptom("exception", "compile", "no #")
    assert symptom_of(replace(WRONG, kind="hang"), TimedOut("run", 5)) == Symptom("hang", "run", "")
    assert symptom_of(replace(WRONG, kind="memory"), OutOfMemory("run", "9")) == Symptom("memory", "run", "#")


def model(names: str, size: int, op: str = "Add", axis: int = 0) -> Model:
    kind = TensorType("float32", (size, size))
    nodes = (
        Node("Softmax", (names[0],), (names[1],), attributes({"axis": axis})),
        Node(op, (names[1], names[0]), (names[2],)),
    )
    return Model(Graph("g", (ValueInfo(names[0], kind),), (ValueInfo(names[2], kind),), nodes), {"": 18})


def test_signatures_prefer_culprits_then_messages_then_the_canonical_form_of_the_graph() -> None:
    guilty = signature_of(WRONG, Values(()), ("B", "A"), model("xyz", 2))
    assert guilty == Signature("toy", "wrong", "", ("A", "B"), "")
    assert str(guilty) == "toy:wrong:A+B"
    raised = signature_of(replace(WRONG, kind="exception"), Raised("run", "Fail", "bad 7"), (), model("xyz", 2))
    assert str(raised) == "toy:exception@run:Fail: bad #"
    both = signature_of(replace(WRONG, kind="exception"), Raised("run", "Fail", "bad 7"), ("A",), model("xyz", 2))
    assert str(both) == "toy:exception@run:A in Fail: bad #"
    formed = signature_of(WRONG, Values(()), (), model("xyz", 2))
    assert formed.text.startswith("Softmax>Add:")
    assert signature_of(WRONG, Values(())).text == ""


def test_the_form_forgets_names_and_sizes_but_not_structure() -> None:
    assert canonical_form(model("xyz", 2)) == canonical_form(model("abc", 5))
    assert canonical_form(model("xyz", 2)) != canonical_form(model("xyz", 2, "Mul"))


_FAIL = "[ONNXRuntimeError] : 1 : FAIL : "
_RUNNING = "Non-zero status code returned while running {} node. Name:'' Status Message: "
_REFUSED = "This is an invalid model. Type Error: Type 'tensor(int4)' of input parameter (c1) of operator (f) is bad."
_INFERRING = "Node () Op ({}) [TypeInferenceError] Graph attribute inferencing failed: "
_MISSING = "/src/include/framework/op_kernel_context.h:45 const T* Input(int) const [with T = Tensor] Missing Input: v1"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (_FAIL + _RUNNING.format("If") + _RUNNING.format("Conv") + "bad", _FAIL + _RUNNING.format("Conv") + "bad"),
        (
            _FAIL + _RUNNING.format("If") + _RUNNING.format("Loop") + _RUNNING.format("Mul") + _MISSING,
            _FAIL + _RUNNING.format("Scan") + _RUNNING.format("Slice") + _MISSING,
        ),
        (
            _FAIL + _INFERRING.format("If") + _INFERRING.format("Loop") + _REFUSED,
            "[ONNXRuntimeError] : 10 : INVALID_GRAPH : " + _REFUSED,
        ),
    ],
    ids=["nested", "lost value", "refused call"],
)
def test_the_place_of_an_error_is_no_part_of_its_message(one: str, other: str) -> None:
    assert one != other
    assert normalise(placeless(one, "onnxruntime")) == normalise(placeless(other, "onnxruntime"))
    assert placeless(one, "toy") == one


def test_the_operator_that_fails_by_itself_is_a_part_of_the_message() -> None:
    texts = {placeless(_FAIL + _RUNNING.format(op) + "bad", "onnxruntime") for op in ("Conv", "Pad")}
    assert len(texts) == 2


def test_an_optimiser_with_masks_of_its_own_keeps_those_that_all_have() -> None:
    lost = (
        "Nodes in a graph must be topologically sorted, however input 'v0' of node: \nname:  OpType: {}\n is not "
        "output of any previous nodes.\n\n==> Context: Bad node spec for node. Name:  OpType: {}"
    )
    for target in ("float16converter", "onnxsim"):
        texts = {normalise(placeless(lost.format(*ops), target)) for ops in (("Where", "If"), ("Neg", "Loop"))}
        assert len(texts) == 1
    differ = "[TypeInferenceError] Inferred elem type differs from existing elem type: (10) vs (1)"
    assert placeless(differ, "float16converter") == "types that differ"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "Check failed: (res != std::string::npos) is false: Invalid SLayout:can't find S in source layoutAB",
            "Check failed: (res != std::string::npos) is false: Invalid SLayout:can't find S in source layoutABCDE",
        ),
        (
            'is false: PrimExpr T.int64(2) * (x_0 * x_1) in function I.GlobalVar("main") has not been computed',
            'is false: PrimExpr T.int64(4) * tile_dim_0 in function I.GlobalVar("main") has not been computed',
        ),
        ("codegen. Offending call: R.add(lv1, lv2)", "codegen. Offending call: R.add(x, R.const(1.0, 'float32'))"),
        (
            "Matmul operands must not be scalar.  However, the expression R.matmul(x0, lv) has a RHS of lv with type R",
            "Matmul operands must not be scalar.  However, the expression R.matmul(y, c) has a RHS of c with type R",
        ),
    ],
)
def test_expressions_of_a_program_are_no_part_of_a_message_of_tvm(one: str, other: str) -> None:
    assert normalise(placeless(one, "tvm")) == normalise(placeless(other, "tvm"))


def test_the_call_that_tvm_cannot_emit_is_a_part_of_the_message() -> None:
    texts = {placeless(f"codegen. Offending call: R.{op}(lv1, lv2)", "tvm") for op in ("add", "concat")}
    assert len(texts) == 2

"""Messages without what varies."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miscompile.base.messages import normalise

MESSAGES = [
    ("local:forward_every_Add_1(-1) is not a registered function", "local:<name><shape> is not a registered function"),
    ("index 12 out of 40", "index # out of #"),
    ("at 0x7ffde1a2 in thread 3", "at <address> in thread #"),
    ("Invalid shape: {2,3,4} against [2, 3, 4]", "Invalid shape: <shape> against <shape>"),
    ("dims {} and (3,)", "dims <shape> and <shape>"),
    ("expected 2x3x4", "expected <shape>"),
    ("input 'conv_12' of \"node_3\" is bad", "input <name> of <name> is bad"),
    ("Node (fused_matmul_7) Op (MatMul)", "Node <name> Op (MatMul)"),
    (
        'In Node, ("", Loop, "", -1) : ("c0": tensor(int64),"",) -> ("v1",) , Error Graph must be in SSA form',
        "In Node <name>, Error Graph must be in SSA form",
    ),
    ("node name: layer.3/add failed", "node <name> failed"),
    ("of output arg (Cast_v1/copy_0) of node (/copy) is bad", "of output arg <name> of node <name> is bad"),
    ("/onnxruntime_src/onnxruntime/core/graph/graph.cc:1234 Resolve", "graph.cc:# Resolve"),
    ("C:/work/src/einsum.h:7", "einsum.h:#"),
    ("cannot open /tmp/abc123/model.onnx now", "cannot open <path> now"),
    ("it can't be   done\n\n at once", "it can't be done at once"),
    ("for FCmp %12 = fcmp oeq i1 true, %7, !dbg !3", "for FCmp <value> = fcmp oeq i# <value>, <value>, !dbg !#"),
    ("for FCmp %1 = fcmp oeq i1 %.a, false, !dbg !3", "for FCmp <value> = fcmp oeq i# <value>, <value>, !dbg !#"),
    ("\x1b[31mred\x1b[0m", "red"),
]


@pytest.mark.parametrize(("message", "normal"), MESSAGES)
def test_what_varies_is_masked(message: str, normal: str) -> None:
    assert normalise(message) == normal


def test_messages_are_cut() -> None:
    assert len(normalise("word " * 200)) <= 300


@given(st.text(alphabet="ab '\"`/\\0129xX.,:(){}[]-\n%node", max_size=80))
def test_normalising_twice_changes_nothing(message: str) -> None:
    once = normalise(message)
    assert normalise(once) == once


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.text("abcdef_", min_size=1, max_size=9))
def test_numbers_and_names_never_matter(a: int, b: int, name: str) -> None:
    def message(number: int, word: str) -> str:
        return f"Node ({word}{number}) got {{{number},{number}}} at 0x{number:x}, {number} bytes, '{word}{number}'"

    assert normalise(message(a, "x")) == normalise(message(b, name))

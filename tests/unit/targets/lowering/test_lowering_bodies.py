"""Bodies become functions within the program; those whose values have no fixed type are refused."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from miscompile.graph.read import read
from miscompile.targets.lowering.program import UnloweredError, lower
from miscompile.targets.lowering.table import Lowering, Table, load

sys.path.insert(0, str(Path(__file__).parent))

HEAD = '<ir_version: 8, opset_import: ["" : 18]> '

BRANCHES = """g (bool c, float[2] x) => (float[2] y, float[2] z) <float[2] k = {10, 20}> {
    y, z = If (c) <
        then_branch = one () => (float[2] a, float[2] b) <float[2] own = {1, 2}> { a = Add(x, own) b = Add(x, k) },
        else_branch = two () => (float[2] d, float[2] e) <float[2] own = {3, 4}> { d = Sub(x, own) e = Sub(k, x) }
    > }"""

LOOP = """g (int64 m, float[2] x) => (float[2] y) {
    y = Loop (m, , x) <body = b (int64 i, bool on, float[2] s) => (bool go, float[2] t) {
        go = Identity(on) t = Add(s, x) }> }"""

ROWS = """g (float[2] x) => (float[2] y, float[3,2] rows) <int64 m = {3}> {
    y, rows = Loop (m, , x) <body = b (int64 i, bool on, float[2] s) => (bool go, float[2] t, float[2] r) {
        go = Identity(on) t = Add(s, x) r = Sub(s, x) }> }"""

NESTED = """g (bool c, float[3,2] x, float[2] s) => (float[2] y, float[3,2] rows) {
    y, rows = Scan <num_scan_inputs = 1, body = b (float[2] t, float[2] part) => (float[2] u, float[2] row) {
        u = If (c) <
            then_branch = one () => (float[2] v) { v = Add(t, part) },
            else_branch = two () => (float[2] w) { w = Sub(t, part) }
        >
        row = Relu(u) }> (s, x) }"""


def lowered(text: str) -> tuple[str, Any]:
    model = onnx.parser.parse_model(HEAD + text)
    found = lower(read(model.SerializeToString()), load("sample_lowerings"))
    space: dict[str, Any] = {"np": np, **{name: value.array for name, value in found.constants.items()}}
    exec(found.source, space)
    return found.source, space["program"]


X = np.array([5, 7], np.float32)


def test_branches_capture_and_their_constants_stay_apart() -> None:
    source, program = lowered(BRANCHES)
    assert [value.tolist() for value in program(True, X)] == [[6, 9], [15, 27]]
    assert [value.tolist() for value in program(False, X)] == [[2, 3], [5, 13]]
    assert "then_branch=then_branch, else_branch=else_branch, outputs=2" in source
    assert source.count("    def ") == 2


def test_a_loop_carries_and_captures() -> None:
    source, program = lowered(LOOP)
    assert program(np.int64(3), X)[0].tolist() == [20, 28]
    assert program(np.int64(0), X)[0].tolist() == [5, 7]
    assert "turns=None" in source


def test_a_loop_is_told_how_often_it_turns() -> None:
    source, program = lowered(ROWS)
    last, rows = program(X)
    assert last.tolist() == [20, 28]
    assert rows.tolist() == [[0, 0], [5, 7], [10, 14]]
    assert "turns=3" in source


def test_the_condition_of_a_loop_may_be_a_constant_outside() -> None:
    text = ROWS.replace("<int64 m = {3}>", "<int64 m = {3}, bool yes = {1}>").replace("Identity(on)", "Identity(yes)")
    source, program = lowered(text)
    assert "turns=3" in source
    assert program(X)[0].tolist() == [20, 28]


def test_declared_shapes_count_where_none_is_inferred() -> None:
    text = """g (bool c, float[4] x, int64[2] sizes) => (float[2] y) { y = If (c) <
        then_branch = one () => (float[2] a) { a, rest = Split(x, sizes) },
        else_branch = two () => (float[2] b) { b, more = Split(x, sizes) }> }"""
    with pytest.raises(UnloweredError, match="operand 1 of Split"):
        lowered(text)


def test_bodies_stand_in_bodies() -> None:
    source, program = lowered(NESTED)
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    last, rows = program(True, x, X)
    assert last.tolist() == [11, 16]
    assert rows.tolist() == [[5, 8], [7, 11], [11, 16]]
    last, rows = program(False, x, X)
    assert last.tolist() == [-1, -2]
    assert rows.tolist() == [[5, 6], [3, 3], [0, 0]]
    assert "        def then_branch():" in source


def test_bodies_of_functions_are_lowered_too() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18, "local" : 1]>
    g (bool c, float[2] x) => (float[2] y) { y = local.pick(c, x) }
    <domain: "local", opset_import: ["" : 18]> pick (c, x) => (y) {
        y = If (c) <then_branch = one () => (a) { a = Add(x, x) }, else_branch = two () => (b) { b = Relu(x) }> }"""
    found = lower(read(onnx.parser.parse_model(text).SerializeToString()), load("sample_lowerings"))
    space: dict[str, Any] = {"np": np}
    exec(found.source, space)
    assert space["program"](True, X)[0].tolist() == [10, 14]
    assert space["program"](False, -X)[0].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            """g (bool c, float[2] x, float[3] z) => (float[N] y) { y = If (c) <
                then_branch = one () => (float[2] a) { a = Relu(x) },
                else_branch = two () => (float[3] b) { b = Relu(z) }> }""",
            "branches differ in shape",
        ),
        (
            """g (int64 m, float[2] x) => (float[N] y) { y = Loop (m, , x) <
                body = b (int64 i, bool on, float[K] s) => (bool go, float[L] t) {
                    go = Identity(on) t = Concat<axis = 0>(s, x) }> }""",
            "states may change in shape",
        ),
        (
            """g (int64 m, float[2] x) => (float[2] y, float[N,2] rows) { y, rows = Loop (m, , x) <
                body = b (int64 i, bool on, float[2] s) => (bool go, float[2] t, float[2] r) {
                    go = Identity(on) t = Add(s, x) r = Sub(s, x) }> }""",
            "constant number of turns only",
        ),
        (
            """g (bool c, float[2] x) => (float[2] y, float[N,2] rows) <int64 m = {3}> { y, rows = Loop (m, c, x) <
                body = b (int64 i, bool on, float[2] s) => (bool go, float[2] t, float[2] r) {
                    go = Identity(on) t = Add(s, x) r = Sub(s, x) }> }""",
            "constant number of turns only",
        ),
        (
            """g (float[2] x) => (float[2] y) <int64 m = {3}> { y = Loop (m, , x) <
                body = b (int64[1] i, bool on, float[2] s) => (bool go, float[2] t) {
                    go = Identity(on) t = Add(s, x) }> }""",
            "turn or condition is no scalar",
        ),
        (
            """g (float[0,2] x) => (float[0,2] rows) { rows = Scan <num_scan_inputs = 1,
                body = b (float[2] part) => (float[2] row) { row = Relu(part) }> (x) }""",
            "over no elements",
        ),
        (
            """g (float[3,2] x, float[2] s) => (float[2] y, float[3,2] rows) {
                y, rows = Scan <num_scan_inputs = 1, scan_input_axes = [0],
                body = b (float[2] t, float[2] part) => (float[2] u, float[2] row) {
                    u = Add(t, part) row = Relu(u) }> (s, x) }""",
            "attribute scan_input_axes of Scan",
        ),
        (
            """g (bool c, float[2] x) => (float[2] y) { y = If (c) <
                then_branch = one () => (float[2] a) { a = Abs(x) },
                else_branch = two () => (float[2] b) { b = Relu(x) }> }""",
            "operator Abs",
        ),
    ],
)
def test_what_has_no_lowering_is_said(text: str, reason: str) -> None:
    with pytest.raises(UnloweredError, match=reason):
        lowered(text)


def test_what_bodies_capture_passes_through_a_function_of_the_table() -> None:
    table = load("sample_lowerings")
    held = Lowering(
        "captured", "def captured(*values):\n    return [value + 1 for value in values]", (), frozenset(), ()
    )
    wider = Table(table.operators, {**table.definitions, "captured": held})
    text = """g (bool c, float[2] x, float[2] z) => (float[2] y) { y = If (c) <
        then_branch = one () => (float[2] a) { a = Add(x, z) },
        else_branch = two () => (float[2] b) { b = Sub(x, z) }> }"""
    found = lower(read(onnx.parser.parse_model(HEAD + text).SerializeToString()), wider)
    assert "x_2, z_2 = captured(x, z)" in found.source
    space: dict[str, Any] = {"np": np}
    exec(found.source, space)
    assert space["program"](True, X, X)[0].tolist() == [12, 16]

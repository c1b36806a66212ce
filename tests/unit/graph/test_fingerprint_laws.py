"""What the fingerprint must not see, and what it must."""

from dataclasses import replace

import numpy as np
import pytest
from graph_strategies import reordered, valid_models
from hypothesis import given, settings
from hypothesis import strategies as st

from miscompile.graph.edges import all_names
from miscompile.graph.fingerprint import fingerprint
from miscompile.graph.model import Model
from miscompile.graph.rename import rename
from miscompile.graph.text.parser import parse_model


@given(st.data(), valid_models())
@settings(max_examples=80)
def test_names_and_order_do_not_count(data: st.DataObject, model: Model) -> None:
    present = sorted(all_names(model.graph))
    names = dict(zip(present, data.draw(st.permutations([f"n{place}" for place in range(len(present))])), strict=True))
    other = data.draw(reordered(replace(model, graph=replace(rename(model.graph, names), name="other"))))
    other = replace(
        other,
        ir_version=8,
        graph=replace(other.graph, nodes=tuple(replace(node, name="") for node in other.graph.nodes)),
    )
    assert fingerprint(other) == fingerprint(model)


BASE = """
opset 21
graph g(%a: float32[N,3], %b: float32[N,3], %c: bool[]) -> (%y: float32[N,3], %z: float32[N,3]) {
  init %w: float32[3] = [1.0, 2.0, 3.0]
  init %u: float32[3] = [1.0, 2.0, 3.0]
  %t = Sub(%a, %b)
  %s = Add(%t, %w)
  %y = LeakyRelu(%s) {alpha=0.5}
  %z = If(%c) {
    then_branch=graph yes() -> (%p) { %p = Sub(%a, %s) },
    else_branch=graph no() -> (%q) { %k = Constant() {value=tensor float32[] [4.0]} %q = Mul(%b, %k) }
  }
}
"""

CHANGES = {
    "operator": ("Add(%t", "Mul(%t"),
    "attribute": ("alpha=0.5", "alpha=0.25"),
    "attribute left out": (" {alpha=0.5}", ""),
    "edge": ("Sub(%a, %b)", "Sub(%b, %a)"),
    "captured edge": ("Sub(%a, %s)", "Sub(%a, %t)"),
    "order of captures": ("Sub(%a, %s)", "Sub(%s, %a)"),
    "dtype of an input": ("%c: bool[]", "%c: uint8[]"),
    "symbol": ("%b: float32[N,3]", "%b: float32[M,3]"),
    "opset": ("opset 21", "opset 20"),
    "domain": ("= Add", "= other::Add"),
    "output order": ("%y: float32[N,3], %z: float32[N,3]", "%z: float32[N,3], %y: float32[N,3]"),
    "dead node": ("%t = Sub", "%dead = Neg(%a)\n%t = Sub"),
    "unused initialiser": ("  init %u: float32[3] = [1.0, 2.0, 3.0]\n", ""),
    "initialiser or node": (
        "init %w: float32[3] = [1.0, 2.0, 3.0]",
        "%w = Constant() {value=tensor float32[3] [1.0, 2.0, 3.0]}",
    ),
    "initialiser or input": (
        "%c: bool[]) -> (%y: float32[N,3], %z: float32[N,3]) {\n  init %w: float32[3] = [1.0, 2.0, 3.0]",
        "%c: bool[], %w: float32[3]) -> (%y: float32[N,3], %z: float32[N,3]) {",
    ),
}
SIZES = {"size": ("%b: float32[N,3]", "%b: float32[N,4]")}
CONTENTS = {
    "initialiser": ("init %w: float32[3] = [1.0, 2.0, 3.0]", "init %w: float32[3] = [1.0, 2.0, 4.0]"),
    "sign of zero": ("[4.0]", "[-4.0]"),
}


def _changed(old: str, new: str) -> Model:
    assert BASE.count(old) == 1
    return parse_model(BASE.replace(old, new))


@pytest.mark.parametrize("change", [*CHANGES, *SIZES, *CONTENTS])
def test_what_changes_the_meaning_counts(change: str) -> None:
    pair = {**CHANGES, **SIZES, **CONTENTS}[change]
    assert fingerprint(_changed(*pair)) != fingerprint(parse_model(BASE))


@pytest.mark.parametrize("change", CHANGES)
def test_structure_counts_without_values_and_sizes(change: str) -> None:
    first = fingerprint(parse_model(BASE), values=False, shapes=False)
    assert fingerprint(_changed(*CHANGES[change]), values=False, shapes=False) != first or change == "symbol"


@pytest.mark.parametrize("change", CONTENTS)
def test_contents_can_be_ignored(change: str) -> None:
    base = parse_model(BASE)
    assert fingerprint(_changed(*CONTENTS[change]), values=False) == fingerprint(base, values=False)


def test_sizes_can_be_ignored() -> None:
    pair = SIZES["size"]
    assert fingerprint(_changed(*pair), shapes=False) == fingerprint(parse_model(BASE), shapes=False)


def test_names_of_symbols_do_not_count() -> None:
    assert fingerprint(parse_model(BASE.replace("N,", "batch,"))) == fingerprint(parse_model(BASE))


def test_sharing_counts() -> None:
    head = "opset 21 graph g(%x: float32[2]) -> (%y, %z) {"
    one = parse_model(head + "%a = Relu(%x) %b = Relu(%x) %y = Neg(%a) %z = Neg(%a) }")
    two = parse_model(head + "%a = Relu(%x) %b = Relu(%x) %y = Neg(%a) %z = Neg(%b) }")
    assert fingerprint(one) != fingerprint(two)


def test_bodies_of_functions_count() -> None:
    text = "opset 21 opset f 1 graph g(%x: float32[2]) -> (%y) {{ %y = f::F(%x) }} "
    text += "function f::F(%a) -> (%b) {{ opset 21 %b = {op}(%a) }}"
    first, second = parse_model(text.format(op="Relu")), parse_model(text.format(op="Neg"))
    assert fingerprint(first) != fingerprint(second)
    assert fingerprint(first) == fingerprint(parse_model(text.format(op="Relu").replace("%a", "%q")))


def test_trailing_left_out_inputs_do_not_count() -> None:
    head = "opset 21 graph g(%x: float32[2]) -> (%y) {"
    assert fingerprint(parse_model(head + "%y = Clip(%x, _, _) }")) == fingerprint(
        parse_model(head + "%y = Clip(%x) }")
    )


def test_the_digest_is_stable() -> None:
    text = fingerprint(parse_model(BASE))
    assert len(text) == 16
    assert int(text, 16) >= 0
    assert np.unique([fingerprint(parse_model(BASE)) for _ in range(3)]).size == 1

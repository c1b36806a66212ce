"""Attributes of ONNX are float32: a rule that makes an operand of one must mean that number."""

import numpy as np

from miscompile.graph.attributes import attributes
from miscompile.graph.model import Node
from miscompile.transforms.rules.terms import TermType
from miscompile.transforms.rules.translation.nodes import term_of

TYPES = {name: TermType("float64", (3,)) for name in "gbmv"} | {name: TermType("float64", (2, 3)) for name in "xy"}


def epsilon(**given: float) -> object:
    node = Node("BatchNormalization", ("x", "g", "b", "m", "v"), ("y",), attributes(dict(given)))
    terms = term_of(node, TYPES, {})
    assert terms is not None
    return terms[0][0].parameters[0]


def test_the_default_is_a_float32() -> None:
    assert epsilon() == float(np.float32(1e-5)) != 1e-5


def test_what_is_given_is_a_float32() -> None:
    assert epsilon(epsilon=0.1) == float(np.float32(0.1)) != 0.1

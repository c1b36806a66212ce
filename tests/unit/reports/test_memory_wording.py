"""The title and the first sentence of an issue about memory safety name the access and the tensor."""

from typing import Any

import numpy as np
import pytest

from miscompile.core.case import Case
from miscompile.core.finding import Finding, Property, Signature
from miscompile.core.tensor import tensor
from miscompile.findings.folder import Stored
from miscompile.graph.emit import to_program
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.reports.forms import form_of
from miscompile.reports.wording import summary_of, title_of


def stored(kind: Any, details: dict[str, Any]) -> Stored:
    info = TensorType("float32", (3,))
    graph = Graph("g", (ValueInfo("x", info),), (ValueInfo("y", info),), (Node("Relu", ("x",), ("y",)),))
    case = Case(to_program(Model(graph, {"": 18})), ((tensor(np.ones(3, np.float32)),),))
    signature = Signature("toy", kind, str(details["memory"]), (), "Relu")
    facts = {"rule": "memory", "details": details}
    return Stored(Finding("one", Property("memory", "toy", signature), case, "message", facts), "confirmed", None, {})


@pytest.mark.parametrize(
    ("kind", "memory", "role", "words"),
    [
        ("death", "read behind", "input", "reads behind the end of an input"),
        ("exception", "write before", "output", "writes before the beginning of an output"),
        ("death", "write into", "initializer", "writes into an initializer"),
        ("wrong", "uninitialised", "output", "depends on memory that nobody has written in an output"),
        ("death", "heap", "", "corrupts the heap"),
        ("death", "crash", "", "dies when its memory is the caller's"),
    ],
)
def test_the_access_is_named(kind: str, memory: str, role: str, words: str) -> None:
    found = stored(kind, {"memory": memory, "role": role})
    assert f"Relu: {words}" in title_of(found)
    assert words in summary_of(found, form_of("toy"))

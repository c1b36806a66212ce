"""Findings as tests of XLA's repository."""

import numpy as np
import pytest

pytest.importorskip("jax")

from miscompile.core.tensor import tensor
from miscompile.graph.emit import to_program
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.targets.upstream import UpstreamStory
from miscompile.triage.upstream import upstream_files

KIND = TensorType("float32", (2, 2))


def test_the_program_becomes_hlo_that_the_runner_of_xla_reads() -> None:
    nodes = (Node("MatMul", ("x", "x"), ("m",)), Node("Relu", ("m",), ("y",)))
    graph = Graph("g", (ValueInfo("x", KIND),), (ValueInfo("y", KIND),), nodes)
    feed = (tensor(np.array([[1.5, -2], [0, 3]], np.float32)),)
    story = UpstreamStory(to_program(Model(graph, {"": 18})).payload, feed, None, "O1", ("cse",), "wrong", "", "t")
    (files,) = upstream_files("miscompile.targets.xla.lit:lit_test", [story])
    text = files["upstream_test.hlo"]
    run, _, *program = text.splitlines()
    assert run == (
        "// RUN: run_hlo_module --platform=CPU --reference_platform=Interpreter --input_format=hlo "
        "--xla_backend_optimization_level=1 --xla_disable_hlo_passes=cse %s"
    )
    assert program[0].startswith("HloModule")
    assert "constant({ { 1.5, -2 }, { 0, 3 } })" in text, "the inputs are constants: the tool draws parameters"
    assert "opt-barrier" in text
    hlo = pytest.importorskip("jaxlib._hlo")
    assert hlo.hlo_module_from_text(text).name.startswith("jit_program")

"""Scripts as files that a person can open; each is also executed against the real compiler.

Set UPDATE_SNAPSHOTS=1 to write the files anew, then read the difference.
"""

import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from miscompile.core.case import Case
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Tensor, tensor
from miscompile.core.verdict import Evidence, FindingKind
from miscompile.graph.attributes import attributes
from miscompile.graph.emit import to_program
from miscompile.graph.model import Attribute, Function, Graph, Model, Node, TensorType, ValueInfo
from miscompile.targets.onnxruntime.about import ABOUT
from miscompile.triage.confirm import confirm, confirmed, run_script
from miscompile.triage.script import write_script

FOLDER = Path(__file__).parent / "triage"
SMALL = TensorType("float32", (2, 3))


@dataclass(frozen=True)
class Story:
    """A finding to write a script for, and what the script must do where the compiler has no such bug."""

    name: str
    case: Case
    kind: FindingKind = "wrong"
    rule: str = "exact"
    details: tuple[tuple[str, float], ...] = ()
    culprits: tuple[str, ...] = ()
    disabled: frozenset[str] = frozenset()
    alone: bool = False
    code: int = 0
    says: str = "the bug does not show"

    def script(self) -> str:
        faulty = Run(self.case, "onnxruntime", Build("full", self.disabled))
        reference = None if self.alone else Run(self.case, "onnxruntime", Build("off"))
        evidence = Evidence(self.kind, self.rule, "what was seen, in a line", faulty, reference, "", dict(self.details))
        return write_script(self.case, evidence, culprits=self.culprits, versions={"onnxruntime": "1.99.0"})


def case_of(model: Model, *feed: Tensor) -> Case:
    return Case(to_program(model), (feed,))


def fusion() -> Case:
    nodes = (Node("MatMul", ("x", "w"), ("v",)), Node("Add", ("v", "b"), ("y",)))
    constants = {
        "w": tensor(np.array([[1, 2], [3, 4], [5, 6]], np.float32)),
        "b": tensor(np.array([0.1, -2], np.float32)),
    }
    outputs = (ValueInfo("y", TensorType("float32", (2, 2))),)
    graph = Graph("g", (ValueInfo("x", SMALL),), outputs, nodes, constants)
    return case_of(Model(graph, {"": 18}), tensor(np.arange(6, dtype=np.float32).reshape(2, 3)))


def rich() -> Case:
    """Attributes of every spelling, a body, a function, symbolic sizes, large and odd constants."""
    odd = tensor(np.array([np.nan, np.inf, -0.0, 1e-45, 0.1, 3e38], np.float32))
    large = tensor((np.arange(600) ** 3 % 997).astype(np.float32).reshape(100, 6))
    one = ValueInfo("r", TensorType("float32", (2, 6)))
    body = Graph("then", (), (one,), (Node("Neg", ("s",), ("r",)),))
    other = Graph("else", (), (ValueInfo("q", one.type),), (Node("Abs", ("s",), ("q",)),))
    branches = {"then_branch": Attribute("graph", body), "else_branch": Attribute("graph", other)}
    twice = Function("own", "Twice", ("a",), ("b",), (Node("Add", ("a", "a"), ("b",)),), {"": 18})
    nodes = (
        Node("Slice", ("large", "zero", "two"), ("c",)),
        Node("Where", ("pick", "odd", "c"), ("d",)),
        Node("Twice", ("d",), ("e",), domain="own"),
        Node("Clip", ("e",), ("f",), name="clip 'it'"),
        Node("Gemm", ("f", "f"), ("g",), attributes({"alpha": 0.1, "transB": 1})),
        Node("ReduceSum", ("g",), ("h",), attributes({"keepdims": 1})),
        Node("Add", ("f", "h"), ("s",)),
        Node("If", ("yes",), ("t",), branches),
        Node("Transpose", ("t",), ("u",), attributes({"perm": (1, 0)})),
        Node("Concat", ("u", "x"), ("y",), attributes({"axis": 0})),
    )
    constants = {
        "odd": odd,
        "large": large,
        "zero": tensor(np.array([0], np.int64)),
        "two": tensor(np.array([2], np.int64)),
        "pick": tensor(np.zeros((2, 6), bool)),
        "yes": tensor(np.array(True)),
    }
    inputs = (ValueInfo("x", TensorType("float32", ("n", 2))),)
    outputs = (ValueInfo("y", TensorType("float32", (None, 2))),)
    model = Model(Graph("rich", inputs, outputs, nodes, constants), {"": 18, "own": 1}, (twice,))
    return case_of(model, tensor(np.ones((3, 2), np.float32)))


def brain_floats() -> Case:
    kind = TensorType("bfloat16", (3,))
    nodes = (Node("Cast", ("x",), ("v",), attributes({"to": 1})), Node("Cast", ("v",), ("y",), attributes({"to": 16})))
    graph = Graph("g", (ValueInfo("x", kind),), (ValueInfo("y", kind),), nodes)
    return case_of(Model(graph, {"": 18}), tensor(np.array([1, 2.5, -3], np.float32), "bfloat16"))


def rounding_model() -> Graph:
    """A fused GELU rounds differently: to expect equal bits is wrong, and shows what a script does with a bug."""
    nodes = (
        Node("Div", ("x", "root"), ("a",)),
        Node("Erf", ("a",), ("b",)),
        Node("Add", ("b", "one"), ("c",)),
        Node("Mul", ("x", "c"), ("d",)),
        Node("Mul", ("d", "half"), ("y",)),
    )
    numbers = {"root": 2**0.5, "one": 1.0, "half": 0.5}
    constants = {name: tensor(np.array(value, np.float32)) for name, value in numbers.items()}
    kind = TensorType("float32", (100,))
    return Graph("g", (ValueInfo("x", kind),), (ValueInfo("y", kind),), nodes, constants)


def rounding() -> Case:
    return case_of(Model(rounding_model(), {"": 18}), tensor(np.linspace(-3, 3, 100, dtype=np.float32)))


def out_of_range() -> Case:
    graph = Graph(
        "g",
        (ValueInfo("x", SMALL), ValueInfo("i", TensorType("int64", (1,)))),
        (ValueInfo("y", TensorType("float32", (1, 3))),),
        (Node("Gather", ("x", "i"), ("y",)),),
    )
    return case_of(Model(graph, {"": 18}), tensor(np.zeros((2, 3), np.float32)), tensor(np.array([9], np.int64)))


ALL_BUT_ONE = frozenset(ABOUT.passes) - {"MatMulAddFusion"}
STORIES = [
    Story("fusion", fusion(), culprits=("MatMulAddFusion",), disabled=ALL_BUT_ONE),
    Story("tolerance", fusion(), rule="monte-carlo", details=(("allowed", 1e-6), ("difference", 0.5))),
    Story("rich", rich(), disabled=frozenset({"ConstantFolding", "CastElimination"})),
    Story("brain_floats", brain_floats()),
    Story("false_expectation", rounding(), code=1, says="BUG:"),
    Story("shape", fusion(), "shape", "structure"),
    Story("exception", out_of_range(), "exception", "status", alone=True, code=1, says="BUG: level full raises"),
    Story("harmless_exception", fusion(), "exception", "status", culprits=("MatMulAddFusion",), disabled=ALL_BUT_ONE),
    Story("death", fusion(), "death", "status"),
    Story("hang", fusion(), "hang", "status", alone=True),
    Story("memory", fusion(), "memory", "status"),
]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_scripts_look_like_their_snapshots(story: Story) -> None:
    path = FOLDER / f"{story.name}.py"
    text = story.script()
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")


def test_the_decision_is_about_the_bad_output_alone() -> None:
    """The first output of this model differs by rounding, which is no bug of the second."""
    graph = rounding_model()
    both = replace(graph, outputs=(*graph.outputs, ValueInfo("half", TensorType("float32", ()))))
    case = case_of(Model(both, {"": 18}), tensor(np.linspace(-3, 3, 100, dtype=np.float32)))
    first, second = Story("", case), Story("", case, details=(("feed", 0), ("output", 1)))
    assert "OFF)[0][0])" in first.script()
    assert "OFF)[0][1])" in second.script()


@pytest.mark.compiler
@pytest.mark.process
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_scripts_say_what_is_true(story: Story, tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(story.script(), "utf-8")
    result = run_script(path)
    assert result.code == story.code, result.stderr
    assert result.status == ("shows" if story.code else "absent")
    assert story.says in result.stdout


def test_scripts_are_well_formatted() -> None:
    paths = [str(FOLDER / f"{story.name}.py") for story in STORIES]
    options = ["--isolated", "--line-length=120", "--target-version=py311"]
    for command in (["format", "--diff"], ["check", "--select", "E,F,W,I,B,UP"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, *options, *paths],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout


SCRIPTS = {
    "shows": ("print('BUG: here')\nraise SystemExit(1)", 1),
    "broken import": ("import no_such_module", 1),
    "absent": ("print('BUG' 'less')", 0),
    "dies": ("import os\nprint('DIES: now', flush=True)\nos.abort()", -6),
    "dies unannounced": ("import os\nos.abort()", -6),
    "exits oddly after the announcement": ("import sys\nprint('DIES: now', flush=True)\nsys.exit(134)", 134),
    "fails instead of dying": ("print('DIES: now', flush=True)\nraise ValueError", 1),
}


@pytest.mark.process
@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("shows", "shows"),
        ("broken import", "broken"),
        ("absent", "absent"),
        ("dies", "shows"),
        ("dies unannounced", "broken"),
        ("exits oddly after the announcement", "shows"),
        ("fails instead of dying", "broken"),
    ],
)
def test_a_script_must_say_what_it_is_about(name: str, status: str, tmp_path: Path) -> None:
    source, code = SCRIPTS[name]
    path = tmp_path / "script.py"
    path.write_text(source, "utf-8")
    result = run_script(path)
    assert (result.status, result.code) == (status, code)


@pytest.mark.process
def test_a_script_is_stopped_after_its_time(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text("import time\nprint('BUG: soon', flush=True)\ntime.sleep(60)", "utf-8")
    result = run_script(path, seconds=1.5)
    assert (result.status, result.code) == ("broken", None)
    assert result.stdout.startswith("BUG: soon")


@pytest.mark.process
def test_confirmation_needs_three_times(tmp_path: Path) -> None:
    path, counter = tmp_path / "script.py", tmp_path / "times"
    path.write_text("print('BUG: here')\nraise SystemExit(1)", "utf-8")
    assert len(confirm(path)) == 3
    assert confirmed(confirm(path))
    once = f"import os, sys\nseen = os.path.exists({str(counter)!r})\nopen({str(counter)!r}, 'w').close()\n"
    path.write_text(f"{once}if seen:\n    sys.exit(0)\nprint('BUG: here')\nsys.exit(1)", "utf-8")
    unstable = confirm(path)
    assert [result.status for result in unstable] == ["shows", "absent"]
    assert not confirmed(unstable)

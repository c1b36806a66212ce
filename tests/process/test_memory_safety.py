"""The toy's faults of memory: each is found in guarded memory, is named, and shows in a script of its own."""

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from miscompile.base.specs import Spec
from miscompile.core.case import Case
from miscompile.core.examination import Examination, examine
from miscompile.core.run import Build
from miscompile.core.tensor import tensor
from miscompile.core.verdict import Holds, Violated
from miscompile.execution.limits import Limits
from miscompile.execution.pool import LocalPool
from miscompile.graph.emit import emit, to_program
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.oracles.memory import MemorySafety
from miscompile.targets.toy.bugs import MEMORY_BUGS
from miscompile.triage.confirm import run_script
from miscompile.triage.script import write_script
from miscompile.triage.signature import signature_of

pytestmark = pytest.mark.process

TARGET = f"toy{{bugs={'+'.join(MEMORY_BUGS)}}}"
FILLS = (0x00, 0x3F)


@pytest.fixture(scope="module")
def pool() -> Iterator[LocalPool]:
    with LocalPool(TARGET, 1, Limits(seconds=10.0)) as opened:
        yield opened


def model_of(op: str) -> Model:
    """A call of one operator on seven numbers."""
    kind = TensorType("float32", (7,))
    return Model(Graph("g", (ValueInfo("x", kind),), (ValueInfo("y", kind),), (Node(op, ("x",), ("y",)),)), {"": 18})


def case_of(op: str) -> Case:
    program = to_program(model_of(op))
    assert program.payload == emit(model_of(op))
    return Case(program, ((tensor(np.arange(1.0, 8.0, dtype=np.float32)),),))


def examined(op: str, place: str, pool: LocalPool) -> Examination:
    build = Build("full", transform=Spec("guarded").with_options(place=place))
    return examine(case_of(op), MemorySafety(TARGET, build, FILLS), pool, random.Random(0))


@pytest.mark.parametrize(
    ("op", "place", "kind", "signature", "words"),
    [
        ("Neg", "end", "death", "read behind:input of Neg", "reads behind the end of input 'x' (28 bytes) at byte 28"),
        ("Abs", "end", "death", "write behind:output of Abs", "writes behind the end of output 'y' (28 bytes)"),
        ("Abs", "aligned", "exception", "write behind:output of Abs", "writes behind the end of output 'y' (28 bytes)"),
        ("Abs", "begin", "exception", "write behind:output of Abs", "writes behind the end of output 'y' (28 bytes)"),
        ("Sqrt", "begin", "wrong", "uninitialised:output of Sqrt", "output 'y' depends on the content of fresh memory"),
    ],
)  # fmt: skip
def test_a_fault_is_named_and_shows_in_a_fresh_process(
    op: str, place: str, kind: str, signature: str, words: str, pool: LocalPool, tmp_path: Path
) -> None:
    seen = examined(op, place, pool)
    assert isinstance(seen.verdict, Violated)
    evidence = seen.verdict.evidence
    assert evidence.kind == kind
    assert words in evidence.message
    assert str(signature_of(evidence, seen.faulty, (), model_of(op))) == f"toy:{kind}@{signature}"
    script = tmp_path / "repro.py"
    script.write_text(write_script(case_of(op), evidence, seen.faulty), "utf-8")
    done = run_script(script)
    assert done.status == "shows", done
    if kind == "death":
        assert words in done.stderr


@pytest.mark.parametrize("place", ["end", "begin", "aligned"])
def test_a_sound_kernel_holds_at_every_place(place: str, pool: LocalPool) -> None:
    assert examined("Exp", place, pool).verdict == Holds()


@pytest.mark.parametrize("place", ["aligned", "begin"])
def test_a_read_of_the_slack_is_not_noticed(place: str, pool: LocalPool) -> None:
    """It is what the placement at the end is for."""
    assert examined("Neg", place, pool).verdict == Holds()

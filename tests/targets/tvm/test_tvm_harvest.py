"""The harvest of TVM's tests: pairs under the hook, files that die or fail, and the patterns that come of them."""

import importlib.util
import json
from pathlib import Path

import pytest

from miscompile.base.errors import SpecError
from miscompile.harvest.patterns.tvm_tests import extract_tvm, gathered, harvest_tvm, harvested, run_file
from miscompile.targets.tvm.relax.splice_transform import ENDING

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.process,
    pytest.mark.skipif(importlib.util.find_spec("tvm") is None, reason="apache-tvm is not installed"),
]

HEAD = """
import os, time
import tvm
from tvm import relax
from tvm.script import relax as R, ir as I, tirx as T

@I.ir_module
class Module:
    @T.prim_func(private=True, s_tir=True)
    def half(A: T.Buffer((T.int64(4),), "float32"), B: T.Buffer((T.int64(4),), "float32")):
        for i in range(T.int64(2)):
            with T.sblock("half"):
                v = T.axis.spatial(T.int64(2), i)
                B[v] = A[v]

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")):
        with R.dataflow():
            a = R.sin(x)
            b = R.sin(x)
            c = R.add(a, b)
            d = R.call_tir(Module.half, (x,), out_ty=R.Tensor((4,), "float32"))
            e = R.add(d, R.const(1, "float32"))
            out = (c, e)
            R.output(out)
        return out
"""

GOOD = (
    HEAD
    + """
def test_shared():
    relax.transform.EliminateCommonSubexpr()(Module)

def test_nothing_to_do():
    tvm.transform.Sequential([relax.transform.AdjustMatmulOrder()])(Module)
"""
)

BAD = (
    HEAD
    + """
def test_then_dies():
    relax.transform.EliminateCommonSubexpr()(Module)
    os.abort()
"""
)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "tvm" / "tests" / "python" / "relax"
    folder.mkdir(parents=True)
    (folder / "test_transform_good.py").write_text(GOOD)
    (folder / "test_bad.py").write_text(BAD)
    return tmp_path / "tvm"


def test_a_harvest_keeps_pairs_and_goes_on(checkout: Path, tmp_path: Path) -> None:
    out, library = tmp_path / "out", tmp_path / "library"
    said: list[str] = []
    found = harvest_tvm(checkout, out, said.append)
    assert found.files == {"passed": 1, "crashed": 1}
    assert found.by_pass["EliminateCommonSubexpr"] == (1, 1)
    assert found.by_pass["AdjustMatmulOrder"] == (1, 0), "a pass that another one runs is seen"
    assert found.modules == 1
    assert said[0].startswith("[1/2] test_transform_good.py: passed"), "tests of passes come first"
    assert harvest_tvm(checkout, out, said.append) == found == gathered(out)
    assert len(said) == 2, "nothing runs twice"
    assert {line["file"] for line in harvested(out)} == {"test_transform_good.py", "test_bad.py"}

    given = extract_tvm(out, library, said.append)
    assert given.files == {"ended": 2}
    assert given.left["loops that leave results unwritten"] >= 1
    assert not given.patterns, "all hang together by x, and the loop program is a stand-in"
    assert not list(library.glob(f"*{ENDING}"))


def test_a_pattern_that_can_be_trusted_gets_into_the_library(checkout: Path, tmp_path: Path) -> None:
    file = checkout / "tests" / "python" / "relax" / "test_transform_good.py"
    file.write_text(
        GOOD.replace("range(T.int64(2))", "range(T.int64(4))").replace("(T.int64(2), i)", "(T.int64(4), i)")
    )
    (checkout / "tests" / "python" / "relax" / "test_bad.py").unlink()
    harvest_tvm(checkout, tmp_path / "out", lambda _: None)
    given = extract_tvm(tmp_path / "out", tmp_path / "library", lambda _: None)
    assert given.by_pass == {("EliminateCommonSubexpr", "subgraph"): 1}
    (entry,) = [json.loads(one.read_text()) for one in (tmp_path / "library").glob(f"*{ENDING}")]
    assert "EliminateCommonSubexpr" in entry["wakes"]
    assert entry["operators"] == ["sin", "sin", "add", "call_tir", "add"]
    assert (entry["holes"], entry["outputs"]) == (["float32[4]"], ["float32[4]", "float32[4]"])


def test_a_file_that_hangs_is_ended(checkout: Path, tmp_path: Path) -> None:
    file = checkout / "test_hangs.py"
    file.write_text("import time\n\ndef test_hangs():\n    time.sleep(1000)\n")
    assert run_file(file, tmp_path / "out.jsonl", 5.0) == "timed out"


def test_what_is_no_checkout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="no checkout"):
        harvest_tvm(tmp_path, tmp_path / "out")
    with pytest.raises(SpecError, match="no harvest"):
        extract_tvm(tmp_path, tmp_path / "library")

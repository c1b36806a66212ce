"""The verbs that run onnx's own cases: `export` writes a suite, `support` a table, and `--diff` compares two."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from miscompile.cli.main import program
from miscompile.core.tensor import tensor
from miscompile.findings.store import Campaign, Store
from miscompile.instances.archive import Archive, write_archive
from miscompile.instances.instance import Instance
from miscompile.instances.values import Held

X = Held(tensor(np.array([[-1.0, 2.0]], np.float32)))


def call(*words: str | Path) -> Result:
    return CliRunner().invoke(program, [str(word) for word in words])


def test_export_writes_a_suite_of_the_chosen_instances(tmp_path: Path) -> None:
    instances = tuple(
        Instance("onnx", op, "node", (), {}, (X,), version=17, source="tests", origin=f"test_{op}")
        for op in ("Relu", "Neg", "RandomNormalLike")
    )
    write_archive(Archive("onnx", instances), tmp_path / "own.jsonl.gz")
    words = ("export", "--suite", tmp_path / "suite", "--instances", tmp_path / "own.jsonl.gz")
    done = call(*words, "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (len(told["tests"]), sum(told["left out"].values())) == (2, 1)
    assert len(list((tmp_path / "suite" / "migrated").iterdir())) == 2
    assert (tmp_path / "suite" / "conftest.py").exists()
    again = call(*words)
    assert (again.exit_code, "not empty" in again.stderr) == (2, True)
    refused = call("export", "--suite", tmp_path / "other", "--for", "openvino{via=torch}")
    assert (refused.exit_code, "takes no ONNX models" in refused.stderr) == (2, True)


@pytest.mark.slow
@pytest.mark.process
def test_support_writes_tables_that_can_be_compared(tmp_path: Path) -> None:
    for level in ("off", "full"):
        done = call(
            "support", "toy", "--ops", "Relu,Celu", "--level", level, "--out", tmp_path / level, "--workers", "1"
        )
        assert done.exit_code == 0, done.output
    tables = [tmp_path / level / "toy.json" for level in ("off", "full")]
    assert json.loads(tables[0].read_text("utf-8"))["target"].startswith("toy")
    same = call("support", "--diff", *tables, "--json")
    assert same.exit_code == 0, same.output
    assert call("support").exit_code == call("support", "toy", "--diff", *tables).exit_code == 2
    assert "has no level" in call("support", "toy", "--level", "o9").stderr


def test_support_lists_what_a_campaign_was_refused(tmp_path: Path) -> None:
    with Store.open(tmp_path / "out") as store:
        store.begin(Campaign("toy", 0, {}, {}, 0.0))
        store.begin_session(0.0)
        store.add_counters({"tests": 9, "refused by toy | Resize | no GPU": 2, "taken by toy | Resize": 7})
    shown = call("support", "--refused", tmp_path / "out")
    assert shown.exit_code == 0
    last = [line.split() for line in shown.output.splitlines()][-1]
    assert last == ["toy", "Resize", "no", "GPU", *["depends", "on", "the", "form"], "2", "7"]
    (row,) = json.loads(call("support", "--refused", tmp_path / "out", "--json").output)
    assert row == {
        "target": "toy", "operator": "Resize", "reason": "no GPU", "refused": 2, "taken": 7, "form": True,
        "verdict": "depends on the form",
    }  # fmt: skip
    assert call("support", "toy", "--refused", tmp_path / "out").exit_code == 2

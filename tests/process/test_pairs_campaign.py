"""A campaign of pairs: it ends by itself, and a resumed one makes the pairs that are left."""

import json
from collections import Counter
from pathlib import Path

import pytest
from campaigns import Start

pytestmark = [pytest.mark.process, pytest.mark.slow]

OPS = ("Add", "Relu", "Transpose", "MatMul", "Sin", "Acosh")


def finished(out: Path) -> Counter[str]:
    """Return the finished tasks of all lanes and sessions."""
    return Counter(line for path in (out / "tasks").glob("*-*") for line in path.read_text().splitlines())


def test_two_lanes_and_a_resumed_campaign_make_every_pair_twice(tmp_path: Path, start: Start) -> None:
    out = tmp_path / "out"
    words = ("toy", "--producer", "pairs", "--ops", ",".join(OPS), "--dtypes", "float32", "--seed", "3")
    code, _, stderr = start(out, *words, "--workers", "2", "--tests", "20").end(120)
    assert code == 0, stderr
    assert "72 of 72 tasks are left" in stderr
    assert 0 < len(finished(out)) <= 20

    code, shown, stderr = start(out, "toy", "--resume", "--workers", "2").end(120)
    assert code == 0, stderr
    ends = finished(out)
    assert set(ends.values()) == {1}
    expected = {f"{one} {other} {turn}" for one in OPS for other in OPS for turn in range(2)}
    assert {line.removeprefix("made ").removeprefix("not drawn ") for line in ends} == expected
    assert {"not drawn Sin Acosh 0", "not drawn Sin Acosh 1"} <= set(ends)
    summary = json.loads((out / "summary.json").read_text())
    made = sum(line.startswith("made ") for line in ends)
    assert summary["tasks"] == {"total": 72, "made": made, "not_drawn": 72 - made}
    assert summary["tests"] == made
    assert "none left" in shown

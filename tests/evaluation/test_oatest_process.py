"""The tables of OATest with real workers: the toy compiler's passes fire, its planted bugs are found and told apart."""

import json
from pathlib import Path

import pytest

from evaluation.oatest.experiments import OatestSettings, run
from miscompile.base.rng import stream
from miscompile.ops.support import Support
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.strict import Strict

pytestmark = pytest.mark.process


def pairs(folder: Path) -> Path:
    """Leave generated programs as `miscompile harvest --keep` leaves models."""
    strict = Strict(
        GeneratorOptions(opsets=(17,), control=0.0, containers=0.0, spread=0.0, motifs=0.5), Support(open=True)
    )
    lines = []
    for number in range(80):
        name = f"{number}.onnx"
        (folder / name).write_bytes(strict.propose(stream(0, number)).program.payload)
        lines.append(json.dumps({"model": name, "pass": "", "changed": None, "test": f"program {number}"}) + "\n")
    (folder / "pairs.jsonl").write_text("".join(lines))
    return folder


@pytest.mark.slow
def test_splicing_and_ablation_on_the_toy_compiler(tmp_path: Path) -> None:
    target = "toy{bugs=sub_commutes}"
    *_, results = run(OatestSettings("splicing", (target,), syntheses=30, watched=10, probe_seconds=60.0))
    (spliced,) = results.splicing
    assert spliced.checked == 30
    assert spliced.valid + spliced.refused == 30
    assert spliced.disputed <= 1
    assert spliced.inside > 15
    assert spliced.compiling > 0
    settings = OatestSettings(
        "ablation", (target,), watched=10, tests=20, pairs=str(pairs(tmp_path)), each=1, patience=120.0,
        probe_seconds=60.0,
    )  # fmt: skip
    *_, results = run(settings)
    library = results.libraries[target]
    assert len(library.pairs) > 4
    assert [series.arm for series in results.ablation] == [
        "own", "block", "subgraph", "whole", "random", "tests", "alone",
    ]  # fmt: skip
    own = results.ablation[0]
    assert own.trigger is not None
    assert own.trigger.rate > own.trigger.by_chance
    assert all(series.valid > 0.9 and series.sets > 1 for series in results.ablation)
    found = [failure for series in results.ablation for failure in series.settled.failures]
    planted = "toy:wrong:OperandOrdering"
    assert {failure.signature for failure in found} <= {planted, f"{planted} in non-default builds"}

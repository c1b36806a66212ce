"""The bench of OATest with real workers: the toy compiler's passes fire, its planted bugs are found and told apart."""

import pytest

from miscompile.bench.oatest import Options, run

pytestmark = pytest.mark.process


def test_splicing_and_ablation_on_the_toy_compiler() -> None:
    target = "toy{bugs=sub_commutes}"
    options = Options(
        (target,), syntheses=30, watched=10, tests=25, programs=40, each=1, patience=120.0, probe_seconds=60.0,
    )  # fmt: skip
    *_, results = run(options)
    (spliced,) = results.splicing
    assert spliced.checked == 30
    assert spliced.valid + spliced.refused == 30
    assert spliced.disputed == 0
    assert spliced.inside > 15
    assert spliced.compiling > 0
    library = results.libraries[target]
    assert len(library.cuts) >= 8
    assert [series.arm for series in results.ablation] == [
        "own", "block", "subgraph", "whole", "random", "tests", "alone",
    ]  # fmt: skip
    own = results.ablation[0]
    assert own.trigger is not None
    assert own.trigger.rate > own.trigger.by_chance
    assert all(series.valid > 0.9 and series.sets > 1 for series in results.ablation)
    found = [failure for series in results.ablation for failure in series.settled.failures]
    assert {failure.signature for failure in found} <= {"toy:wrong:OperandOrdering"}

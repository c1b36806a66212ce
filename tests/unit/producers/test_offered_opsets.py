"""Graphs have opsets of which the target takes operators, although an old release may take none of a newer one."""

from dataclasses import replace
from typing import Any

import pytest

from miscompile.base.errors import RejectedDraft
from miscompile.base.rng import stream
from miscompile.ops.support import Support
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.strict import Strict


def taking(*opsets: int) -> Strict:
    """A producer for a target that takes operators of these opsets only."""
    producer = Strict(GeneratorOptions(opsets=(18, 21, 25)), Support(open=True))
    whole: Any = producer._menu
    producer._menu = lambda opset, *among: whole(opset) if opset in opsets else replace(whole(opset), pairs=())  # type: ignore[assignment]
    return producer


def test_an_opset_without_operators_is_not_drawn() -> None:
    producer = taking(18, 21)
    opsets = {producer.propose(stream(seed, "x")).recipe["opset"] for seed in range(20)}
    assert opsets == {18, 21}


def test_a_draft_of_such_opsets_alone_is_rejected() -> None:
    with pytest.raises(RejectedDraft, match="takes no operator of these opsets"):
        taking(18).grow(stream(0, "x"), (25,))

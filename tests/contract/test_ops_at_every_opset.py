"""Every operator is drawn in every opset that has it, and onnx's full checker takes what comes of it."""

import pytest
from onnx import checker

from miscompile.base.errors import RejectedDraft
from miscompile.graph.emit import model_proto
from miscompile.ops.draws import draw_call
from miscompile.ops.registry import admitted, families, written
from miscompile.ops.spec import OpSpec
from miscompile.producers.options import OPSETS

_DRAWS = 3
_MOST = 20


@pytest.mark.parametrize("family", families())
def test_calls_pass_the_full_checker_in_each_opset(family: str) -> None:
    members = [spec for spec in written().values() if spec.family == family]
    assert members
    for spec in members:
        opsets = [opset for opset in OPSETS if admitted(spec, opset)]
        assert opsets, spec.op
        for opset in opsets:
            assert _drawn(spec, opset) == _DRAWS, (spec.op, opset)


def _drawn(spec: OpSpec, opset: int) -> int:
    """Draw calls over the element types in turn until enough came about, and check each."""
    dtypes, found = admitted(spec, opset), 0
    for index in range(_MOST):
        try:
            drawn = draw_call(spec, dtypes[index % len(dtypes)], opset, seed=opset, index=index)
        except RejectedDraft:
            continue
        checker.check_model(model_proto(drawn.model()), full_check=True)
        found += 1
        if found == _DRAWS:
            break
    return found

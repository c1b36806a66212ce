"""Strategies for Hypothesis (https://hypothesis.readthedocs.io): property tests of anything that takes ONNX models.

    from hypothesis import given
    from miscompile.strategies import models

    @given(models())
    def test_my_importer(model): ...

Hypothesis is no dependency of the package: this module needs it installed.
"""

import random
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import onnx
from hypothesis import strategies as st

from miscompile.ops.support import Support
from miscompile.producers.options import OPSETS, GeneratorOptions
from miscompile.producers.strict import Strict

MOST_NODES = 8

_RICH: Mapping[str, Any] = {}
_PLAIN: Mapping[str, Any] = {"motifs": 0.0, "noops": 0.0, "control": 0.0, "inner_outputs": 0.0}
"""Options with and without patterns of several operators. The generator plants one where a random number is small, so
that the smallest choices would make large models; a plain model is the smaller choice."""


def models(
    *,
    max_nodes: int = MOST_NODES,
    ops: Sequence[str] = (),
    dtypes: Sequence[str] = (),
    opsets: Sequence[int] = (),
    max_rank: int = 3,
    max_dim: int = 4,
) -> st.SearchStrategy[onnx.ModelProto]:
    """Return a strategy that draws valid ONNX models of up to about `max_nodes` operators.

    `ops`, `dtypes` (as in `float32`) and `opsets` restrict the models; empty ones do not, except that operator sets
    newer than the installed onnx are left out. Ranks and sizes of tensors are at most `max_rank` and `max_dim`.

    Models shrink by Hypothesis itself and not by the tool's reducer: every choice of the generator is a choice of
    Hypothesis (`randoms(use_true_random=False)`), so a smaller sequence of choices is another valid model, and
    Hypothesis can replay, store and mix examples. The reducer would have to run the test behind Hypothesis's back, and
    what it returns would be no example that Hypothesis knows. Its shrinking is coarser; for a minimal model give the
    shrunk one to `miscompile check`, whose findings the reducer cuts further.

    Raises UsageError at the first example when the restrictions leave no operator.
    """
    newest = onnx.defs.onnx_opset_version()
    chosen = tuple(opsets) or tuple(opset for opset in OPSETS if opset <= newest)

    def model(size: int, rich: bool, choices: random.Random) -> onnx.ModelProto:
        options = GeneratorOptions(
            nodes=size, spread=0.0, ops=tuple(ops), dtypes=tuple(dtypes), opsets=chosen, max_rank=max_rank,
            max_dim=max_dim, max_elements=256, guidance="off", variants=1, **(_RICH if rich else _PLAIN),
        )  # fmt: skip
        # A producer remembers what it has made, and an example must not depend on others, so each has its own.
        return onnx.load_from_string(Strict(options, _open()).propose(choices).program.payload)

    choices = st.randoms(use_true_random=False, note_method_calls=False)
    return st.builds(model, st.integers(1, max_nodes), st.booleans(), choices)


@lru_cache(maxsize=1)
def _open() -> Support:
    """Return the table that admits every call; it is shared because it caches."""
    return Support(open=True)

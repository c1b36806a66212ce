"""Evaluation of instances by onnx's reference evaluator, in this process."""

import warnings

import numpy as np

from miscompile.base.errors import ModelError
from miscompile.graph.emit import model_proto
from miscompile.graph.model import Model
from miscompile.ops.definitions.evaluator import evaluator
from miscompile.ops.definitions.loop import Loop

MOST_ITERATIONS = 10_000
"""Iterations after which a Loop counts as endless: a changed instance may have a condition that stays true."""


_BOUNDED = type("Loop", (Loop,), {"most_iterations": MOST_ITERATIONS})  # the evaluator finds operators by their names


def evaluated(model: Model, feed: dict[str, object]) -> dict[str, object]:
    """Return the model's outputs by onnx's reference evaluator, by name.

    Raises ModelError for any failure of the evaluator, and for a Loop that does not end soon.
    """
    names = [info.name for info in model.graph.outputs]
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # instances overflow on purpose
            return dict(zip(names, evaluator(model_proto(model), _BOUNDED).run(names, feed), strict=True))
    except Exception as error:
        raise ModelError(f"the reference evaluator: {type(error).__name__}: {error}"[:500]) from error

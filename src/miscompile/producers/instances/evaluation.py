"""Evaluation of instances by onnx's reference evaluator, in this process."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from onnx.reference import ReferenceEvaluator
from onnx.reference.ops.op_loop import Loop

from miscompile.base.errors import ModelError
from miscompile.graph.emit import model_proto
from miscompile.graph.model import Model

MOST_ITERATIONS = 10_000
"""Iterations after which a Loop counts as endless: a changed instance may have a condition that stays true."""


class _BoundedLoop(Loop):  # type: ignore[misc]  # onnx's classes have no types
    """The evaluator's Loop, which raises RuntimeError after `MOST_ITERATIONS`."""

    op_domain = ""
    _run_body: Callable[..., Any]  # set by the evaluator

    def _run(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - onnx's values
        body: Callable[..., Any] = self._run_body
        count = 0

        def counted(*given: Any, **named: Any) -> Any:  # noqa: ANN401
            nonlocal count
            count += 1
            if count > MOST_ITERATIONS:
                raise RuntimeError(f"a Loop has not ended after {MOST_ITERATIONS:,} iterations")
            return body(*given, **named)

        self._run_body = counted
        try:
            return super()._run(*args, **kwargs)
        finally:
            self._run_body = body


_BOUNDED = type("Loop", (_BoundedLoop,), {})  # the evaluator finds operators by the names of their classes


def evaluated(model: Model, feed: dict[str, object]) -> dict[str, object]:
    """Return the model's outputs by onnx's reference evaluator, by name.

    Raises ModelError for any failure of the evaluator, and for a Loop that does not end soon.
    """
    names = [info.name for info in model.graph.outputs]
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # instances overflow on purpose
            return dict(
                zip(names, ReferenceEvaluator(model_proto(model), new_ops=[_BOUNDED]).run(names, feed), strict=True)
            )
    except Exception as error:
        raise ModelError(f"the reference evaluator: {type(error).__name__}: {error}"[:500]) from error

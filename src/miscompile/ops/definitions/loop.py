"""Loop, whose body the evaluator runs. https://onnx.ai/onnx/operators/onnx__Loop.html"""

from typing import Any

import numpy as np
from onnx.helper import tensor_dtype_to_np_dtype
from onnx.reference.op_run import OpRun

from miscompile.core.tensor import Array


class Loop(OpRun):  # type: ignore[misc]  # onnx's classes have no types
    """The Loop of the operator's page.

    onnx's evaluator never enters a Loop without a condition, and joins what its iterations give by `numpy.vstack`,
    which makes matrices of scalars.
    """

    op_domain = ""
    most_iterations: int | None = None
    """Iterations after which the Loop counts as endless (None: any number)."""

    def need_context(self) -> bool:
        """Tell that the body reads values of the graph around it."""
        return True

    def _run(
        self, trips: Any, condition: Any, *states: Any, context: Any, attributes: Any = None, **given: Any  # noqa: ANN401
    ) -> tuple[Any, ...]:  # fmt: skip
        """Raises RuntimeError after `most_iterations`."""
        del given
        body, trips = self.body, None if trips is None else int(np.asarray(trips).reshape(-1)[0])
        carried, going, turn = list(states), condition is None or bool(condition), 0
        rows: list[list[Any]] = [[] for _ in body.output_names[1 + len(states) :]]
        while going and (trips is None or turn < trips):
            if self.most_iterations is not None and turn >= self.most_iterations:
                raise RuntimeError(f"a Loop has not ended after {self.most_iterations:,} iterations")
            values = (np.array(turn, np.int64), np.array(going), *carried)
            found = self._run_body(
                {**context, **dict(zip(body.input_names, values, strict=True))}, attributes=attributes
            )
            going, carried, turn = bool(found[0]), list(found[1 : 1 + len(states)]), turn + 1
            for row, value in zip(rows, found[1 + len(states) :], strict=True):
                row.append(value)
        return (*carried, *(self._joined(place, row) for place, row in enumerate(rows, 1 + len(states))))

    def _joined(self, place: int, row: list[Any]) -> Array:
        """Return what the iterations give, along a new first axis; sizes that no iteration tells are 0."""
        if row:
            return np.stack(row)
        kind = self.body.output_types[place].tensor_type
        sizes = [size.dim_value for size in kind.shape.dim]
        return np.zeros([0, *sizes], tensor_dtype_to_np_dtype(kind.elem_type))

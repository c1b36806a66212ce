"""OpenVINO as a back end of Keras: layers and operations call functions that construct the compiler's graph."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePath
from types import FrameType
from typing import Any

import openvino as ov
from openvino import opset16

from miscompile.core.case import Program
from miscompile.instances.values import Slot
from miscompile.targets.keras import weights
from miscompile.targets.keras.environment import load
from miscompile.targets.keras.layers import operator_of
from miscompile.targets.keras.values import dense
from miscompile.targets.openvino.adapter import TYPES
from miscompile.targets.openvino.keras_base import OpenVinoBehind
from miscompile.targets.openvino.keras_runner import built_by_keras

_ELEMENTS = {dtype: getattr(ov.Type, name) for name, dtype in TYPES.items() if hasattr(ov.Type, name)}

PLUMBING = frozenset({"core.py", "layer.py", "trainer.py", "__init__.py", "export.py"})
"""Files of the back end without conversion functions."""


class OpenVinoKeras(OpenVinoBehind):
    """Lets Keras construct the graph. Sizes are fixed, and the precision is the model's, as in all other builds."""

    def __init__(self) -> None:
        load("openvino")
        weights.install()
        super().__init__()

    def converted(self, program: Program, observe: bool) -> tuple[Any, Sequence[int | None]]:
        """Call the model on parameters of a graph, as in `predict` of this back end."""
        operator = operator_of(program)
        called = operator.model() if operator.slots else operator
        parameters = [_parameter(slot) for slot in operator.slots]
        with entered() as names:
            model = built_by_keras(dense(called), parameters)
        self._functions = tuple(names) if observe else ()
        return model, range(len(parameters))


def _parameter(slot: Slot) -> Any:  # noqa: ANN401 - an extension type
    if slot.dtype not in _ELEMENTS:
        raise NotImplementedError(f"OpenVINO has no element type for {slot.dtype}")
    return opset16.parameter(list(slot.shape), _ELEMENTS[slot.dtype])


@contextmanager
def entered() -> Iterator[dict[str, None]]:
    """Collect the public functions of the back end that run inside the context, as `file:function`, in order, each
    once."""
    names: dict[str, None] = {}

    def watch(frame: FrameType, event: str, argument: object) -> None:
        if event != "call":
            return
        code = frame.f_code
        if "keras/src/backend/openvino/" not in code.co_filename or code.co_name.startswith(("<", "_")):
            return
        file = PurePath(code.co_filename).name
        if file not in PLUMBING:
            names.setdefault(f"{file}:{code.co_name}")

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        yield names
    finally:
        sys.setprofile(before)

"""OpenVINO for programs of Keras: as a back end of Keras, and by the front end for TensorFlow's graphs."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePath
from types import FrameType
from typing import Any

from openvino import opset16
from openvino.tools.ovc import telemetry_stub, telemetry_utils

from miscompile.core.case import Program
from miscompile.core.run import Build
from miscompile.instances.values import Slot
from miscompile.targets.keras import weights
from miscompile.targets.keras.environment import load
from miscompile.targets.keras.graphs import BACKEND, graph_of, kinds, still
from miscompile.targets.keras.layers import operator_of
from miscompile.targets.keras.values import dense
from miscompile.targets.openvino.about import FRAMES, PASSES
from miscompile.targets.openvino.adapter import TYPES, OpenVino, OpenVinoSession
from miscompile.targets.openvino.interface import ov
from miscompile.targets.openvino.keras_runner import built_by_keras, convert_graph, named_places
from miscompile.targets.openvino.runner import compile_read

_OFF = frozenset((*PASSES, *FRAMES))


class OpenVinoBehind(OpenVino):
    """Compiles the models that a front end for a library's programs converts; derived classes define `converted`."""

    def __init__(self) -> None:
        super().__init__()
        telemetry_utils.tm = telemetry_stub  # otherwise every conversion reports to the vendor, from threads of its own
        self._functions: tuple[str, ...] = ()

    def converted(self, program: Program, observe: bool) -> tuple[Any, Sequence[int | None]]:
        """Return the compiler's model, and for each input of the program its number in the model, None for a dropped
        one.

        With `observe`, the names of the conversion functions are stored in `_functions`. Raises the front end's
        exceptions.
        """
        raise NotImplementedError

    def build(self, program: Program, build: Build) -> OpenVinoSession:
        """Convert and compile `program`; level `off` omits the compiler's optional passes."""
        self._functions = ()
        if self._observer is not None:
            self._observer.begin(_OFF if build.level == "off" else ())
        model, places = self.converted(program, build.observe)
        compiled = compile_read(self._core, model, build.level, threads=build.threads)
        return OpenVinoSession(compiled, places, len(model.outputs))

    def fired(self, log: str) -> tuple[str, ...]:
        """Conversion functions that ran, in the order of their first call."""
        del log
        return self._functions


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


class OpenVinoTensorFlow(OpenVinoBehind):
    """Converts the graph of a model of Keras. The conversions are named by types of nodes, because each type has a
    translator."""

    def __init__(self) -> None:
        load(BACKEND)
        still()
        weights.install()
        super().__init__()

    def converted(self, program: Program, observe: bool) -> tuple[Any, Sequence[int | None]]:
        """Trace the model and convert its graph. Raises NotImplementedError if the front end changes an element
        type."""
        operator = operator_of(program)
        graph = graph_of(operator, operator.model())
        if observe:
            self._functions = kinds(graph)
        model = convert_graph(graph)
        places = named_places(len(program.inputs), model)
        for port, place in zip(program.inputs, places, strict=True):
            kind = port.dtype if place is None else TYPES[model.inputs[place].element_type.get_type_name()]
            if kind != port.dtype:
                raise NotImplementedError(f"the front end takes {kind} in place of {port.dtype}")
        return model, places

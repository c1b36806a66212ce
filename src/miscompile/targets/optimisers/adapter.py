"""The adapter of an optimiser in the worker: it optimises a model, checks the result and executes it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort

from miscompile.base.dtypes import BY_CODE, DTYPES
from miscompile.core.case import Feed, Program
from miscompile.core.run import Build
from miscompile.core.tensor import Tensor, numpy_name
from miscompile.graph.foreign import from_foreign, to_foreign
from miscompile.targets import ort_values
from miscompile.targets.optimisers import execution

EXECUTORS = ("onnxruntime", "reference")
"""Values of the option `executor`, the default first: what runs the optimised model."""

_PLAIN = frozenset(name for name, info in DTYPES.items() if info.code not in ort_values.WIDTHS)
"""Element types that numpy itself has."""


class OptimiserAdapter(ABC):
    """An adapter that derived classes complete with the optimiser's call.

    Level `off` executes the original model. With `drops_inputs`, the optimiser removes unused inputs by design.
    """

    drops_inputs = False

    def __init__(self, executor: str = EXECUTORS[0]) -> None:
        self._executor = executor
        self._fired: tuple[str, ...] = ()
        ort.disable_telemetry_events()
        ort.set_default_logger_severity(4)

    @abstractmethod
    def optimise(self, model: bytes, build: Build) -> bytes:
        """Return the model, optimised as `build` says. Raises whatever the optimiser raises."""

    @abstractmethod
    def observe(self, model: bytes, build: Build) -> Sequence[str]:
        """Return the passes that change the model under `build`."""

    def build(self, program: Program, build: Build) -> "ExecutedSession":
        """Optimise, check and load a model. Raises BrokenModelError for a result that is not valid any more."""
        self._fired = ()
        payload = program.payload
        if build.level != "off":
            payload = execution.optimised(payload, lambda model: self.optimise(model, build), self.drops_inputs)
            if build.observe:
                self._fired = tuple(self.observe(program.payload, build))
        if self._executor == "reference":
            return EvaluatorSession(program, payload)
        return RuntimeSession(program, payload)

    def fired(self, log: str) -> tuple[str, ...]:
        """Return the passes that changed the last program; `log` is ignored."""
        del log
        return self._fired


class ExecutedSession(ABC):
    """An optimised model that is loaded for execution, on inputs by name."""

    def __init__(self, program: Program, payload: bytes) -> None:
        self._program, self._payload = program, payload
        self._model = onnx.load_model_from_string(payload)
        self._taken = frozenset(value.name for value in self._model.graph.input)

    @abstractmethod
    def call(self, feed: dict[str, Tensor]) -> Sequence[Tensor | None]:
        """Run on one feed; return the outputs of the program in order, and perhaps more."""

    def run(self, feed: Feed) -> tuple[Tensor | None, ...]:
        """Run once. Raises BrokenModelError when an output contradicts the type that the optimised model declares."""
        ports = self._program.inputs
        given = {port.name: value for port, value in zip(ports, feed, strict=True) if port.name in self._taken}
        found = tuple(self.call(given))[: len(self._program.outputs)]
        results = zip([port.name for port in self._program.outputs], found, strict=True)
        named = {**given, **{name: value for name, value in results if value is not None}}
        execution.require_sizes(self._model, {name: tuple(value.shape) for name, value in named.items()})
        return found


class RuntimeSession(ExecutedSession):
    """A model that ONNX Runtime executes."""

    def __init__(self, program: Program, payload: bytes) -> None:
        super().__init__(program, payload)
        self._session = execution.start_plain(payload)
        self._names = [port.name for port in program.outputs]
        self._all_plain = _PLAIN.issuperset([port.dtype for port in (*program.inputs, *program.outputs)])

    def call(self, feed: dict[str, Tensor]) -> Sequence[Tensor | None]:
        """Run the session on one feed."""
        arrays: dict[str, Any] = {name: value.array for name, value in feed.items()}
        if self._all_plain:
            plain = ort_values.run_arrays(self._session, self._names, arrays)
            return [None if one is None else _wrapped(np.asarray(one)) for one in plain]
        kinds = {name: DTYPES[value.dtype].code for name, value in feed.items()}
        types = {name: kind for name, kind in kinds.items() if kind in ort_values.WIDTHS}
        found = ort_values.run_words(self._session, self._names, arrays, types)
        return [None if one is None else Tensor(BY_CODE[one[0]].name, one[1]) for one in found]


class EvaluatorSession(ExecutedSession):
    """A model that onnx's reference evaluator executes."""

    def call(self, feed: dict[str, Tensor]) -> Sequence[Tensor | None]:
        """Evaluate on one feed."""
        found = execution.evaluate(self._payload, {name: to_foreign(value) for name, value in feed.items()})
        return [None if one is None else from_foreign(np.asarray(one)) for one in found]


def _wrapped(array: "np.ndarray[Any, Any]") -> Tensor:
    return Tensor(numpy_name(array.dtype), array)

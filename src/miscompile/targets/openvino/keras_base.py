"""Base class of OpenVINO's front ends for programs of Keras, whose models are compiled in the same way as those of
ONNX."""

from collections.abc import Sequence
from typing import Any

from openvino.tools.ovc import telemetry_stub, telemetry_utils

from miscompile.core.case import Program
from miscompile.core.run import Build
from miscompile.targets.openvino.about import FRAMES, PASSES
from miscompile.targets.openvino.adapter import OpenVino, OpenVinoSession
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

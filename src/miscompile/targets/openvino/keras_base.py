"""OpenVINO behind a front end for programs of Keras: what such a front end makes is compiled as models of ONNX are."""

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
    """Compiles what a front end for a library's programs makes of them; `converted` is such a front end's own."""

    def __init__(self) -> None:
        super().__init__()
        telemetry_utils.tm = telemetry_stub  # else every conversion reports to the vendor, from threads of its own
        self._functions: tuple[str, ...] = ()

    def converted(self, program: Program, observe: bool) -> tuple[Any, Sequence[int | None]]:
        """Return the compiler's model, and the number of its input for each of the program's, None for dropped ones.

        With `observe`, names of the conversion functions go to `_functions`. Raises whatever the front end raises.
        """
        raise NotImplementedError

    def build(self, program: Program, build: Build) -> OpenVinoSession:
        """Convert and compile `program`; level `off` leaves the compiler's optional passes out."""
        self._functions = ()
        if self._observer is not None:
            self._observer.begin(_OFF if build.level == "off" else ())
        model, places = self.converted(program, build.observe)
        compiled = compile_read(self._core, model, build.level, threads=build.threads)
        return OpenVinoSession(compiled, places, len(model.outputs))

    def passes(self) -> tuple[str, ...]:
        """None: what a front end makes of one operator is too small to bisect."""
        return ()

    def fired(self, log: str) -> tuple[str, ...]:
        """Conversion functions that ran, in the order of their first call."""
        del log
        return self._functions

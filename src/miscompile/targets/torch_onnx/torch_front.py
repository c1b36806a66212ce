"""The exporters' front end for programs of torch: operators of library tests, as modules."""

from functools import partial

from miscompile.core.case import Program
from miscompile.core.run import Build
from miscompile.targets.about import Session
from miscompile.targets.torch.adapter import EagerTorch
from miscompile.targets.torch.conversions import Conversions
from miscompile.targets.torch.export import examples
from miscompile.targets.torch.modules import module_of
from miscompile.targets.torch.onnx_watch import watch_dispatch, watch_symbolics
from miscompile.targets.torch_onnx.adapter import TorchOnnx
from miscompile.targets.torch_onnx.switch_runner import switch_off


class ExportedTorch(TorchOnnx):
    """Exports modules; at level off they are called eagerly."""

    def __init__(self, exporter: str = "dynamo", runtime: str = "onnxruntime") -> None:
        super().__init__(exporter, runtime)
        self._conversions = Conversions()
        watch_dispatch(self._conversions)
        watch_symbolics(self._conversions)

    def build(self, program: Program, build: Build) -> Session:
        """Export `program`. Raises ExportRefusedError, OutsideTorchError, and the exceptions of the exporter."""
        self._conversions.begin(build)
        switch_off(build.disabled)
        if build.level == "off":
            return EagerTorch(program.payload)
        module = module_of(program.payload)
        return self.session(
            program, module, partial(module_of, program.payload), examples(program, module), build.level
        )

    def fired(self, log: str) -> tuple[str, ...]:
        """The names of the exporter's functions that converted the operators of the program, in order."""
        del log
        return self._conversions.seen()

"""Architectures of installed libraries with random weights, exported to ONNX in a child process.

The weights are random because nothing is downloaded. Each library exports as its users do: PyTorch models with
`torch.onnx.export`, Keras models with `Model.export`.
"""

import os
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from miscompile.base.child import collect
from miscompile.base.errors import UsageError
from miscompile.core.events import ProgressListener
from miscompile.harvest.models.candidates import ONNX, Candidate
from miscompile.harvest.processes import ENVIRONMENT, need

LIBRARIES: Mapping[str, Mapping[str, str]] = {
    "timm": {"timm": "timm", "torch": "torch", "onnxscript": "onnxscript"},
    "torchvision": {"torchvision": "torchvision", "torch": "torch", "onnxscript": "onnxscript"},
    "transformers": {"transformers": "transformers", "torch": "torch", "onnxscript": "onnxscript"},
    "keras": {"keras": "keras", "torch": "torch", "onnxscript": "onnxscript"},
}
"""Libraries of architectures, with what each needs: names to import, and names to install."""

_SECONDS = 600.0


def exported(library: str, name: str, scratch: Path, on_progress: ProgressListener) -> Candidate:
    """Export an architecture into the folder `scratch`. Raises UsageError when a library or the name is missing."""
    need(LIBRARIES[library], f"{library}:{name}")
    on_progress(f"exporting {library}:{name} with random weights")
    path = scratch / f"{library}-{name.replace('/', '-')}.onnx"
    command = [sys.executable, "-m", "miscompile.harvest.models.hooks.export", library, name, str(path)]
    done = collect(command, seconds=_SECONDS, environment={**os.environ, **ENVIRONMENT, "KERAS_BACKEND": "torch"})
    if done.status != 0 or not path.is_file():
        lines = [line for line in done.errors().splitlines() if line.strip()] or ["it said nothing"]
        told = "it took too long" if done.status is None else lines[-1].strip()[:300]
        raise UsageError(f"{library}:{name} cannot be exported: {told}")
    return Candidate(f"{library}:{name}", "architecture", library, metadata.version(library), path, ONNX)

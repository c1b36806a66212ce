"""The description of onnx's version converter."""

from miscompile.targets.about import About
from miscompile.targets.optimisers.description import OPTIONS, optimiser

ABOUT: About = optimiser(
    "versionconverter",
    "VersionConverter",
    (),
    optimised="miscompile.targets.versionconverter.runner:converted",
    levels=("off", "there", "full"),
    distributions=("onnx", "onnxruntime"),
    options={**OPTIONS, "to": "the operator set that models are converted to; default 25"},
    extra="optimisers",
    functions=False,
    switches="none: an adapter for each operator and version runs or does not",
)

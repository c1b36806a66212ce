"""The description of onnxconverter-common's float16 conversion, which does not import it."""

from miscompile.targets.about import About
from miscompile.targets.optimisers.description import optimiser

ABOUT: About = optimiser(
    "float16converter",
    "Float16Converter",
    (),
    distributions=("onnxconverter-common", "onnx", "onnxruntime"),
    narrowed={"float32": "float16"},
    switches="none: results are judged as those of float16",
)

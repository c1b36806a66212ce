"""The description of onnxconverter-common's float16 conversion, which does not import it."""

from miscompile.targets.about import About
from miscompile.targets.optimisers.description import optimiser

ABOUT: About = optimiser(
    "float16converter",
    "Float16Converter",
    (),
    distributions=("onnxconverter-common", "onnx", "onnxruntime"),
    narrowed={"float32": "float16"},
    # It leaves operands of many operators in float32; the checker's message names the operator, the cause is one.
    masks=((r"(?s)\[(?:Shape|Type)InferenceError\].*", "types that differ"),),
    switches="none: results are judged as those of float16",
)

"""The description of ONNX Runtime's preparation for quantisation, which does not import it."""

from miscompile.targets.about import About
from miscompile.targets.optimisers.description import optimiser

ABOUT: About = optimiser(
    "quantpreprocess",
    "QuantPreProcess",
    ("symbolic_shape", "optimization", "onnx_shape"),
    distributions=("onnxruntime", "onnx", "sympy"),
    extra="optimisers",
    switches="the arguments skip_symbolic_shape, skip_optimization and skip_onnx_shape of quant_pre_process",
)

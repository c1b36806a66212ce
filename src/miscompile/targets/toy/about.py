"""The face of the toy compiler."""

from miscompile.targets.about import About

SCRIPT = '''\
"""{{ title }}"""
import numpy as np

from miscompile.core.case import Port, Program
from miscompile.core.run import Build
from miscompile.core.tensor import tensor
from miscompile.targets.toy.adapter import ToyAdapter


def run(model: bytes, feed: dict[str, np.ndarray], level: str, disabled: set[str]) -> list[np.ndarray]:
    """Compile `model` at `level` without the passes `disabled`, and run it on `feed`."""
    ports = tuple(Port(name, value.dtype.name, value.shape) for name, value in feed.items())
    program = Program("onnx", model, ports, ())
    session = ToyAdapter(bugs="{{ options.get('bugs', 'none') }}").build(program, Build(level, frozenset(disabled)))
    return [out and out.array for out in session.run(tuple(map(tensor, feed.values())))]
'''

ABOUT = About(
    name="toy",
    title="toy compiler with planted bugs",
    kinds=("onnx",),
    levels=("off", "basic", "full"),
    adapter="miscompile.targets.toy.adapter:ToyAdapter",
    script="miscompile.targets.toy.about:SCRIPT",
    distributions=("numpy", "onnx"),
    max_opset=23,
    max_ir_version=11,
    passes=(
        "ConstantFolding",
        "IdentityElimination",
        "NoOpElimination",
        "CastElimination",
        "TransposeElimination",
        "ReshapeMerging",
        "AddMulNeutral",
        "OperandOrdering",
        "CommonSubexpression",
        "ShapeCleanup",
        "SliceMerging",
        "SplitConcatElimination",
        "ExpandElimination",
        "TransposePushdown",
        "CastSinking",
        "DivToMul",
        "StrengthReduction",
        "SelfCancellation",
        "ZeroAbsorption",
        "DistributeMul",
        "WhereConstant",
        "PadConvFusion",
        "BatchNormFolding",
        "ConvAddFusion",
        "ConvScaleFolding",
        "ReluClipFusion",
        "ScaleHoisting",
        "MatMulAddFusion",
        "ActivationFusion",
        "ReduceFusion",
        "SoftmaxFusion",
        "ArgNegFusion",
        "DeadCode",
        "KernelSelection",
    ),
    twins=(("ReshapeMerging", "ShapeCleanup"),),
    options={"bugs": "planted bugs to switch on: none, all, survivable, or names joined by + (default none)"},
)

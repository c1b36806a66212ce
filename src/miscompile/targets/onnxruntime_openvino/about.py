"""The description of ONNX Runtime with its OpenVINO provider, which does not import it."""

from miscompile.targets.about import About

ABOUT = About(
    name="onnxruntime_openvino",
    title="ONNX Runtime with OpenVINO's provider (CPU)",
    kinds=("onnx",),
    levels=("off", "basic", "full"),
    adapter="miscompile.targets.onnxruntime_openvino.adapter:OpenVinoProvider",
    script="miscompile.targets.onnxruntime_openvino.script:SCRIPT",
    distributions=("onnxruntime-openvino",),
    max_opset=22,
    max_ir_version=10,
    narrowed={
        "float64": "float32", "int64": "int32", "uint64": "int32", "uint32": "int32", "int8": "int8",
        "uint8": "uint8", "int16": "int16", "uint16": "uint16",
    },
    switches="level off runs every node in ONNX Runtime's own provider without graph optimisations; the others give "
    "OpenVINO the nodes that it takes",
)  # fmt: skip
"""The narrower types are those of OpenVINO's CPU plugin."""

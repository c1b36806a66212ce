"""The parts of standalone scripts for ONNX Runtime with OpenVINO's provider, besides the runner."""

from miscompile.targets.about import ScriptLines

_RUN = '''\
def run(level, off=()):
    """Start a session at `level`; return the outputs for each feed."""
    session = start(model.SerializeToString(), level, threads={{ faulty.threads }})
    return [evaluate(session, feed) for feed in feeds]
'''

SCRIPT = ScriptLines(
    sources=("miscompile.targets.onnxruntime_openvino.runner",),
    settings={"OpenVINO's INFERENCE_PRECISION_HINT": 'config["CPU"]["INFERENCE_PRECISION_HINT"] = "f32"'},
    levels={level: f'"{level}"' for level in ("off", "basic", "full")},
    run=_RUN,
    versions='"onnxruntime-openvino", ort.__version__',
)

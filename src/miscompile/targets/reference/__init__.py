"""The ONNX reference implementation as a target: no compiler, but another voice in a vote."""

"""The ONNX reference implementation as a target: not a compiler, but a further result in a majority vote."""

"""The graph value, its text form, and the only door to onnx."""

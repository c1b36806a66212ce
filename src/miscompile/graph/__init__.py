"""The graph value, its text form, and the only code that converts between graphs and onnx."""

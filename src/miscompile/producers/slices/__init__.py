"""Slices of the user's models and onnx's node cases: programs that this tool did not generate."""

"""ONNX Runtime's optimiser of transformer models, in Python."""

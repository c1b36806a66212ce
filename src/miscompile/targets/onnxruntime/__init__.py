"""ONNX Runtime, CPU execution provider."""

"""PyTorch's exporters to ONNX: programs in eager mode against their exported models in ONNX Runtime."""

"""onnxsim: onnxoptimizer's passes and more, constant folding by ONNX Runtime, and shape inference."""

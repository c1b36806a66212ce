"""onnxoptimizer: passes from ONNX to ONNX, in C++."""

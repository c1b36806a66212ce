"""ONNX Runtime's OpenVINO provider as a target."""

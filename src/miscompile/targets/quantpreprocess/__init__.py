"""ONNX Runtime's preparation of models for quantisation: shape inference and optimisation."""

"""The parts that all targets for optimisers of ONNX models share: from a model to another model, which is executed."""

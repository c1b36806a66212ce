"""onnx.version_converter: models of another operator set."""

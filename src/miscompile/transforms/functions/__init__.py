"""Function wrapping and function rewriting of HIRFUZZ, for the model-local functions of ONNX."""

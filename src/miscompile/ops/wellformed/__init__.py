"""The rules of operators' pages that the checker and the shape inference of onnx do not enforce, for one call."""

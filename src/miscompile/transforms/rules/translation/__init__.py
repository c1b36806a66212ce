"""Translation between ONNX nodes and the terms of the rule language, one reader and one writer an operator."""

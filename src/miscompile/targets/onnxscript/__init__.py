"""onnxscript.optimizer: constant folding and rewrite rules on onnx_ir."""

"""ONNX operators as functions of PyTorch. Read as text by `miscompile.targets.lowering.table`; never imported."""

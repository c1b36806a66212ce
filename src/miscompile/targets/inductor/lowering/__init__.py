"""ONNX operators as functions of PyTorch. Read as text by `miscompile.lowering.table`; never imported."""

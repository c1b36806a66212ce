"""ONNX operators as layers of ncnn. Read as text by `miscompile.targets.lowering.table`; never imported."""

"""ONNX operators as operators of LiteRT. Read as text by `miscompile.targets.lowering.table`; never imported."""

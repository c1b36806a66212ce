"""onnxslim: patterns, folding and elimination on a graph of its own, in Python."""

"""The everyday class of programs: the operators and tensors that most of people's models consist of.

Random programs are mostly of rare kinds, because there are many of these. A campaign gives a share of its time to this
class, so that it also tests the programs that people compile.
"""

DTYPE = "float32"
"""The element type of the class; indices and sizes are int64 where operators require it."""

RANKS = (1, 4)
"""The least and the greatest rank of drawn tensors. Results may have rank 0, such as those of reductions."""

OPERATORS = (
    "Add", "Sub", "Mul", "Div", "Pow", "Sqrt", "Exp", "Log", "Erf", "Neg", "Abs", "Reciprocal", "Min", "Max", "Floor",
    "Sin", "Cos", "Sigmoid", "Tanh", "Relu", "LeakyRelu", "PRelu", "Elu", "Clip", "HardSwish", "HardSigmoid", "Gelu",
    "Softplus", "Softmax", "LogSoftmax", "Conv", "ConvTranspose", "MaxPool", "AveragePool", "GlobalAveragePool",
    "GlobalMaxPool", "BatchNormalization", "LayerNormalization", "InstanceNormalization", "GroupNormalization", "Gemm",
    "MatMul", "Einsum", "Reshape", "Transpose", "Concat", "Split", "Slice", "Squeeze", "Unsqueeze", "Flatten",
    "Gather", "Expand", "Pad", "Resize", "Tile", "Where", "Cast", "Identity", "ReduceMean", "ReduceSum", "ReduceMax",
    "ReduceMin", "Equal", "Less", "Greater", "ArgMax", "TopK", "CumSum", "LSTM", "GRU", "DepthToSpace",
    "SpaceToDepth",
)  # fmt: skip
"""Operators of convolutional networks, recurrent networks and transformers, as exporters write them."""

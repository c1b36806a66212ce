"""Operators of torch that are related: what the tool has verified, and lowered programs call.

They are the equivalences of functions and methods in `harvest/relations/data/relations-torch.json`, without those that
`harvest/relations/data/refuted-torch.toml` names; a test derives them from the two,
and fails when this file has others.

The file is written by hand all the same. Relations in the data were seen up to 1e-4 on samples of float32, which is
too little for a transform that promises every bit: each line here is held to its bits on all element types
(`tests/targets/inductor/test_inductor_related.py`), and that takes knowing how the operator is called. Besides, the
text of this file stands in scripts that have torch and nothing else.
"""

SAME = (
    "torch.abs torch.absolute Tensor.abs Tensor.absolute",
    "torch.acos torch.arccos Tensor.acos Tensor.arccos",
    "torch.acosh torch.arccosh Tensor.acosh Tensor.arccosh",
    "torch.asin torch.arcsin Tensor.asin Tensor.arcsin",
    "torch.asinh torch.arcsinh Tensor.asinh Tensor.arcsinh",
    "torch.atan torch.arctan Tensor.atan Tensor.arctan",
    "torch.atanh torch.arctanh Tensor.atanh Tensor.arctanh",
    "torch.det torch.linalg.det Tensor.det",
    "torch.erf torch.special.erf Tensor.erf",
    "torch.logsumexp torch.special.logsumexp Tensor.logsumexp",
    "torch.matmul torch.linalg.matmul Tensor.matmul",
    "torch.neg torch.negative Tensor.neg Tensor.negative",
    "torch.sigmoid torch.nn.functional.sigmoid torch.special.expit Tensor.sigmoid",
    "torch.softmax torch.special.softmax Tensor.softmax",
    "torch.tanh torch.nn.functional.tanh Tensor.tanh",
    "torch.transpose torch.swapaxes torch.swapdims Tensor.transpose Tensor.swapaxes Tensor.swapdims",
)
"""Operators that compute the same: aliases, with their methods."""

METHODS = (
    "addmm amax amin argmin bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_xor ceil chunk clamp clone "
    "cos cosh cumprod cumsum div eq exp flatten floor fmod gather ge gt index_select le log logical_and logical_not "
    "logical_or logical_xor lt maximum minimum narrow permute pow reciprocal reshape resolve_conj round rsqrt scatter "
    "scatter_add sign sin sinh sort split sqrt squeeze t tan tril triu unbind unsqueeze"
)
"""Functions that have no alias, but a method of their name."""

COMPOSED = (
    ("torch.rsqrt", "torch.sqrt", "torch.reciprocal"),
    ("torch.sqrt", "torch.rsqrt", "torch.reciprocal"),
)
"""`first(x)` is `then(second(x))`, verified on floats, up to two units in the last place: first, second, then."""

NAMED_APART = frozenset({"axis0", "axis1", "dim0", "dim1", "split_size", "split_size_or_sections"})
"""Parameters behind the first that related operators name otherwise; a call that names one is left as it is."""

SPREAD = frozenset({"permute", "reshape"})
"""Methods that take sizes one by one, which the functions take together."""

"""Related operators of torch: verified relations between operators that lowered programs call.

They are the equivalences of functions and methods in `harvest/relations/data/relations-torch.json`, without those that
`harvest/relations/data/refuted-torch.toml` names; a test derives them from the two files, and fails when this file
differs.

The file is nevertheless written by hand. Relations in the data were observed up to 1e-4 on samples of float32, which
is not sufficient for a transform that promises equal bits. A test compares the bits of each line here on all element
types (`tests/targets/inductor/test_inductor_related.py`), which requires knowledge of the operator's parameters.
Besides, the text of this file is part of scripts that only need torch.
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
"""Functions without an alias, but with a method of their name."""

COMPOSED = (
    ("torch.rsqrt", "torch.sqrt", "torch.reciprocal"),
    ("torch.sqrt", "torch.rsqrt", "torch.reciprocal"),
)
"""Triples (first, second, then) with `first(x)` equal to `then(second(x))` on floats, up to two units in the last
place."""

NAMED_APART = frozenset({"axis0", "axis1", "dim0", "dim1", "split_size", "split_size_or_sections"})
"""Parameters after the first whose names differ between related operators; a call that names one is not replaced."""

SPREAD = frozenset({"permute", "reshape"})
"""Methods that accept sizes as separate arguments; their functions accept them as one tuple."""

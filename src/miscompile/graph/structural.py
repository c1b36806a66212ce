"""Structural operands: operands whose elements determine shapes or structure instead of being data.

Every component that changes values must know them: noise must not change them; many compilers reject a model with a
barrier or an input in their place; a reducer must not set them to zero. They are in one table, looked up by role.
"""

from collections.abc import Mapping
from functools import cache
from typing import Literal

STRUCTURAL_SIZE = 64
"""The most elements of a constant that may be a shape, axes and the like; larger ones never determine a shape."""

Role = Literal["shape", "size", "control", "quantisation", "setting", "domain"]
"""Why an operand is structural.

`shape`: shapes, axes, pads and positions along axes, which must fit the shapes of other operands; `size`: a number
that determines how many elements a result has, or which one is selected; `control`: conditions, trip counts and
switches that disable an operator; `quantisation`: scales, zero points, and the bias whose unit is the product of
scales; `setting`: determines values only, but many compilers require a constant; `domain`: determines whether a
result is defined.
"""

_REDUCTIONS = tuple(
    f"Reduce{name}"
    for name in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
)  # fmt: skip
_OPERANDS: Mapping[Role, Mapping[str, tuple[int, ...]]] = {
    "shape": {
        **dict.fromkeys(_REDUCTIONS, (1,)),
        "AffineGrid": (1,), "CenterCropPad": (1,), "Col2Im": (1, 2), "ConstantOfShape": (0,), "CumProd": (1,),
        "CumSum": (1,), "DFT": (2,), "Expand": (1,), "MaxUnpool": (2,), "Pad": (1, 3), "Reshape": (1,),
        "Resize": (1, 2, 3), "Slice": (1, 2, 3, 4), "Split": (1,), "SplitToSequence": (1,), "Squeeze": (1,),
        "TensorScatter": (2,), "Tile": (1, 2), "TopK": (1,), "Unsqueeze": (1,), "Upsample": (1,),
    },
    "size": {
        "BlackmanWindow": (0,), "DFT": (1,), "HammingWindow": (0,), "HannWindow": (0,), "MelWeightMatrix": (0, 1, 2),
        "NonMaxSuppression": (2,), "OneHot": (1,), "Range": (0, 1, 2), "STFT": (1, 3), "SequenceAt": (1,),
        "SequenceErase": (1,), "SequenceInsert": (2,), "Trilu": (1,),
    },
    "control": {"Dropout": (1, 2), "If": (0,), "Loop": (0, 1)},
    "quantisation": {
        "ConvInteger": (2, 3), "DequantizeLinear": (1, 2), "MatMulInteger": (2, 3),
        "QLinearConv": (1, 2, 4, 5, 6, 7, 8), "QLinearMatMul": (1, 2, 4, 5, 6, 7), "QuantizeLinear": (1, 2),
    },
    "setting": {
        "GRU": (4,), "LSTM": (4,), "MaxUnpool": (1,), "MelWeightMatrix": (3, 4), "NonMaxSuppression": (3, 4),
        "Pad": (2,), "RNN": (4,),
    },
    "domain": {"Pow": (1,)},
}  # fmt: skip


@cache
def structural_operands(*roles: Role) -> Mapping[str, frozenset[int]]:
    """Return the positions of the operands with one of `roles`, by standard operator; other operators have none."""
    found: dict[str, frozenset[int]] = {}
    for role in roles:
        for op, places in _OPERANDS[role].items():
            found[op] = found.get(op, frozenset()) | frozenset(places)
    return found


def wanted_constant() -> Mapping[str, frozenset[int]]:
    """Return the operands that many compilers require to be constants: all except those with the role `domain`."""
    return structural_operands("shape", "size", "control", "quantisation", "setting")

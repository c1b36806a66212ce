"""The planted faults: each is a missing precondition, a wrong constant or a crash, switched on by name.

`nodes` is the smallest number of operators (not counting Constant) of a model that shows the fault. `passes` are the
passes that must all be on; of a group (`a|b`) any one is sufficient. An empty tuple means that no pass switch avoids
the fault. `optbench` is the number of the OptBench case with the same root cause, 0 for none.
"""

from dataclasses import dataclass
from typing import Literal

from miscompile.base.errors import SpecError
from miscompile.core.verdict import FindingKind

FaultKind = FindingKind | Literal["garbage"]


@dataclass(frozen=True, slots=True)
class Bug:
    """One planted fault: its expected outcome, the passes that contain it, and the size of the smallest model that
    shows it."""

    kind: FaultKind
    stage: Literal["compile", "run"]
    passes: tuple[str, ...]
    nodes: int
    text: str
    optbench: int = 0


BUGS: dict[str, Bug] = {
    # Wrong values.
    "cse_ignores_attributes": Bug(
        "wrong", "compile", ("CommonSubexpression",), 2, "calls that differ only in attributes are merged"
    ),
    "transpose_pair_not_inverse": Bug(
        "shape", "compile", ("TransposeElimination",), 2, "a pair of Transposes is dropped without looking at them"
    ),
    "cast_chain_narrowing": Bug(
        "wrong", "compile", ("CastElimination",), 2, "a chain int32 -> int8 -> int32 is dropped"
    ),
    "cast_chain_bool": Bug(
        "wrong", "compile", ("CastElimination",), 2, "a chain int -> bool -> int is dropped", optbench=3
    ),
    "relu_clip_missing_min": Bug(
        "wrong", "compile", ("ReluClipFusion",), 2, "Relu is dropped before a Clip that has no lower bound", optbench=1
    ),
    "scale_hoisting_vector": Bug(
        "wrong", "compile", ("ScaleHoisting",), 2, "a scale with several elements is moved out of a MatMul", optbench=2
    ),
    "mean_by_reciprocal": Bug(
        "wrong", "run", (), 1, "an integer ReduceMean multiplies by 1/n rounded down", optbench=4
    ),
    "mod_as_bit_mask": Bug(
        "wrong", "compile", ("StrengthReduction",), 1, "a truncating Mod by 2**k becomes a bit mask", optbench=5
    ),
    "arg_min_of_neg_overflow": Bug(
        "wrong", "compile", ("ArgNegFusion",), 2, "ArgMin(Neg(x)) becomes ArgMax(x) for wrapping integers", optbench=6
    ),
    "inlined_in_wider_type": Bug(
        "wrong", "compile", ("CastSinking",), 2, "narrow arithmetic is inlined into a widening Cast", optbench=7
    ),
    "signed_div_as_shift": Bug(
        "wrong", "compile", ("StrengthReduction",), 1, "a signed Div by 2**k becomes an arithmetic shift", optbench=8
    ),
    "sub_commutes": Bug("wrong", "compile", ("OperandOrdering",), 1, "the operands of Sub are sorted", optbench=9),
    "conv_add_last_axis": Bug(
        "wrong", "compile", ("ConvAddFusion",), 2, "an addend along the last axis becomes a channel bias", optbench=10
    ),
    "reshape_merge_zero": Bug(
        "shape", "compile", ("ReshapeMerging|ShapeCleanup",), 2, "Reshapes are merged across a 0 entry"
    ),
    "slice_merge_negative_step": Bug(
        "shape", "compile", ("SliceMerging",), 2, "Slices are merged as if every step were positive"
    ),
    "reduce_fusion_keepdims": Bug(
        "shape", "compile", ("ReduceFusion",), 2, "reductions that drop axes are fused without renaming the axes"
    ),
    "pad_conv_mode": Bug(
        "wrong", "compile", ("PadConvFusion",), 2, "a Pad that is not constant becomes zero padding of a Conv"
    ),
    "concat_split_order": Bug(
        "wrong", "compile", ("SplitConcatElimination",), 2, "Concat of all parts of a Split is dropped in any order"
    ),
    "softmax_axis": Bug("wrong", "compile", ("SoftmaxFusion",), 2, "Exp(LogSoftmax) becomes Softmax of the last axis"),
    "batch_norm_epsilon": Bug("wrong", "compile", ("BatchNormFolding",), 2, "BatchNormalization loses its epsilon"),
    "folding_in_float32": Bug(
        "wrong", "compile", ("ConstantFolding",), 1, "float64 constants are folded in single precision"
    ),
    "bool_or_as_add": Bug("wrong", "run", ("KernelSelection",), 1, "Or on bool is computed as a one-bit sum"),
    "unsigned_sub_clamped": Bug(
        "wrong", "run", ("KernelSelection",), 1, "an unsigned Sub stops at zero instead of wrapping"
    ),
    "bias_inside_activation": Bug(
        "wrong", "compile", ("ActivationFusion", "MatMulAddFusion"), 3, "Add after a fused Relu is moved before it"
    ),
    # Wrong shapes and dtypes, missing outputs.
    "mul_zero_drops_broadcast": Bug(
        "shape", "compile", ("ZeroAbsorption",), 1, "x * 0 becomes the zero and forgets the shape of x"
    ),
    "where_constant_no_expand": Bug(
        "shape", "compile", ("WhereConstant",), 1, "Where with a constant condition forgets to broadcast"
    ),
    "sub_self_dtype": Bug("dtype", "compile", ("SelfCancellation",), 1, "x - x becomes zeros of type int64"),
    "fusion_drops_inner_output": Bug(
        "missing", "compile", ("ActivationFusion",), 2, "a value that is also a graph output is fused away"
    ),
    # Errors of one build only.
    "rank0_key_error": Bug(
        "exception", "compile", ("OperandOrdering",), 1, "the order of operands has no entry for rank 0"
    ),
    "matmul_bias_rank": Bug(
        "exception", "run", ("MatMulAddFusion",), 2, "a bias of higher rank is fused into a Gemm that cannot take it"
    ),
    "checked_gather": Bug(
        "exception", "run", ("KernelSelection",), 1, "the Gather that is picked takes no negative indices"
    ),
    # Faults that end or harm the worker.
    "segfault_tile": Bug(
        "death", "compile", ("NoOpElimination",), 1, "Tile on an operand of rank 3 or more reads address zero"
    ),
    "abort_reflect_pad": Bug("death", "compile", ("PadConvFusion",), 1, "Pad in reflect mode aborts"),
    "hang_concat_same": Bug(
        "hang", "compile", ("SplitConcatElimination",), 1, "Concat of a value with itself never ends"
    ),
    "memory_expand": Bug("memory", "compile", ("ExpandElimination",), 1, "Expand collects memory without bound"),
    "cubic_cse": Bug("cost", "compile", ("CommonSubexpression",), 1, "a search takes time with the cube of the calls"),
    "garbage_arg_max": Bug("garbage", "compile", ("ArgNegFusion",), 1, "ArgMax prints megabytes to both streams"),
}

MEMORY_BUGS: dict[str, Bug] = {
    "neg_reads_behind": Bug("death", "run", (), 1, "Neg reads one element behind the end of its operand"),
    "abs_writes_behind": Bug("death", "run", (), 1, "Abs, as an output, writes one element behind the end"),
    "sqrt_leaves_last": Bug("wrong", "run", (), 1, "Sqrt, as an output, leaves its last element unwritten"),
}
"""Faults that show only in guarded memory (`--check memory`), as `kind` says; neither `all` nor `survivable` has them.
They are in the lowering of every optimised build."""

COSTLY = frozenset({"cubic_cse"})
"""Faults that make programs slow and not wrong."""

FATAL = frozenset({"segfault_tile", "abort_reflect_pad", "hang_concat_same", "memory_expand"})
"""Faults that may only be triggered in a process that may crash."""


def parse_bugs(text: str) -> frozenset[str]:
    """Read the target option `bugs`: `none`, `all`, `survivable` (all but the fatal and the costly ones), or names
    joined by `+`.

    Raises SpecError for a name that is not in the table.
    """
    if text in ("", "none"):
        return frozenset()
    chosen: set[str] = set()
    for name in text.split("+"):
        if name == "all":
            chosen |= set(BUGS)
        elif name == "survivable":
            chosen |= set(BUGS) - FATAL - COSTLY
        elif name in BUGS or name in MEMORY_BUGS:
            chosen.add(name)
        else:
            raise SpecError(
                f"toy has no bug '{name}'; write none, all, survivable, or of: {', '.join((*BUGS, *MEMORY_BUGS))}"
            )
    return frozenset(chosen)

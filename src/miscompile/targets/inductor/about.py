"""The description of PyTorch Inductor, which does not import torch.

The names of passes are of three kinds, in the order in which they run: FX passes by the compiler's names; patterns
by the names of their handlers, or of the functions that describe them; and settings of the scheduler and the code
generator, whose names are ours (see `settings.py`). Patterns that only apply on GPUs are omitted.
"""

from miscompile.base.specs import Spec
from miscompile.targets.about import About, CpuCap, Front
from miscompile.targets.derivatives import DERIVATIVE
from miscompile.targets.inductor.transforms import TRANSFORMS

GRAPH_PASSES = (
    "remove_noop_ops",
    "constant_fold_uniform_value",
    "reorder_for_locality",
    "reinplace_inplaceable_ops",
)
"""FX passes that can be switched off; those that decompose or sort must run."""

EARLY_PATTERNS = (
    "pointless_convert",
    "pointless_view",
    "pointless_view_pair",
    "pointless_permute_pair",
    "bmm_to_mm",
    "mul_softmax_pattern",
    "div_softmax_pattern",
    "scatter_upon_const_tensor",
    "fuse_attention",
)
"""Patterns before the lowering to loops; `fuse_attention` represents all patterns of attention."""

LATE_PATTERNS = (
    "pointless_cumsum_replacement",
    "addmm",
    "cat_splitwithsizes_replace",
    "splitwithsizes_cat_replace",
    "cat_slice_cat",
    "reuse_partial",
)
SETTINGS = (
    "pick_loop_orders",
    "split_reductions",
    "unroll_reductions",
    "constant_and_index_propagation",
    "comprehensive_padding",
    "layout_optimization",
    "scheduler_fusion",
    "epilogue_fusion",
    "loop_ordering_after_fusion",
    "horizontal_fusion",
    "reorder_for_peak_memory",
    "vectorization",
    "loop_tail_vectorization",
    "tiling_heuristics",
    "inplace_buffers",
    "buffer_reuse",
)

ABOUT = About(
    name="inductor",
    title="PyTorch Inductor (CPU)",
    kinds=("onnx",),
    levels=("off", "aot", "fallback", "nopasses", "full"),
    adapter="miscompile.targets.inductor.adapter:Inductor",
    script="miscompile.targets.inductor.script:SCRIPT",
    distributions=("torch",),
    cpu_caps={"AVX2": CpuCap({"ATEN_CPU_CAPABILITY": "avx2"})},
    transforms=tuple(TRANSFORMS),
    settle="miscompile.targets.inductor.transforms:settled",
    variants={
        "decomposed": (Spec("decomposed"), Spec("decomposed").with_options(share="0.9")),
        "related": (Spec("related"), Spec("related").with_options(share="1.0")),
        "strided": (Spec("strided"),),
    },
    altering=(DERIVATIVE,),
    masks=((r"(?s)tensors: call_\w+ .*?\): got ", "tensors: got "),),  # which call it is, and its arguments
    derivatives=("training", "reverse", "forward", "adjoint"),
    lowered=True,
    devices=("cpu", "cuda"),
    max_opset=28,
    max_ir_version=14,
    passes=(*GRAPH_PASSES, *EARLY_PATTERNS, *LATE_PATTERNS, *SETTINGS),
    forced=True,
    extra="inductor",
    recycle=5_000,  # each build leaks some 0.1 MB
    fronts={
        "torch": Front(
            "torch",
            "torch.compile of single operators",
            "miscompile.targets.inductor.torch_front:TorchInductor",
            ("torch",),
            converters=r"torch/(_inductor|_decomp|_prims|_refs|_meta_registrations|_functorch|_dynamo)\b",
            script="miscompile.targets.inductor.script:TORCH",
        ),
    },
    switches="FX passes and patterns are observed and switched by hooks, the scheduler and code generator by settings",
)

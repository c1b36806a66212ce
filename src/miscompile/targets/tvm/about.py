"""The description of TVM, which does not import it.

Pass names are those of `PassInfo`, as used by `PassContext(disabled_pass=...)`; some differ from the name of the Python
function that makes the pass (`DecomposeOps`, `DataflowInsertInPlaceCalls`). Unknown names are ignored. Omitted are
passes that lower constructs which the code generator does not accept, passes that keep a program safe
(`s_tir.RewriteUnsafeSelect`), the inner passes of another pass (`FuseTIRInner`, and `ExpandTupleArguments`, without
which `FuseTIR` fails on functions of tuples), and passes for GPUs only.
"""

from miscompile.targets.about import About, CpuCap, Front
from miscompile.targets.tvm.relax.transforms import SPLICE, WRAP
from miscompile.targets.tvm.sequences import PASSES

_GRAPH = (
    "ConvertToDataflow",
    "CanonicalizeBindings",
    "FoldBatchnormToConv2D",
    "DecomposeOps",
    "FoldConstant",
    "RemoveRedundantReshape",
    "EliminateCommonSubexpr",
    "AdjustMatmulOrder",
    "ExpandMatmulOfSum",
    "ReorderTakeAfterMatmul",
    "CombineParallelMatmul",
    "ReorderPermuteDimsAfterConcat",
    "FuseTransposeMatmul",
    "ConvertLayout",
    "DeadCodeElimination",
    "TopologicalSort",
    "DataflowInsertInPlaceCalls",
)
_LOWERING = (
    "AnnotateTIROpPattern",
    "FuseOps",
    "FuseTIR",
    "RemoveUnusedParameters",
    "RewriteDataflowReshape",
    "StaticPlanBlockMemory",
    "KillAfterLastUse",
)
_LOOPS = (
    "s_tir.CanonicalizeLoop",
    "s_tir.PlanAndUpdateBufferAllocationLocation",
    "s_tir.CompactBufferAllocation",
    "s_tir.StmtSimplify",
    "tirx.NarrowDataType",
    "s_tir.LoopPartition",
    "tirx.StorageRewrite",
    "s_tir.HoistIfThenElse",
    "s_tir.RenormalizeSplitPattern",
    "tirx.StmtSimplify",
    "tirx.RemoveNoOp",
    "tirx.CommonSubexprElim",
)

_MASKS = (
    # One letter for each axis.
    (r"(?<=in source layout)[A-Z]+", "#"),
    # Expressions, whose names and shapes are those of the program.
    (r"(?s)(?<=is false: PrimExpr ).*?(?= in function )", "#"),
    (r"(?s)(Offending call:\s*R\.\w+)\(.*", r"\1(#)"),
    (r"(?s)(must not be scalar\.\s+However, the expression)\s.*?\s(has a [LR]HS of)\s.*", r"\1 # \2 #"),
    (r"(?s)(reduction length of the operands to be equal\.).*", r"\1"),
)
"""What varies in a message from program to program."""

ABOUT = About(
    name="tvm",
    title="Apache TVM Relax (CPU)",
    kinds=("onnx",),
    levels=("off", "default", "cpu", "compiled", "full", "native"),
    adapter="miscompile.targets.tvm.adapter:Tvm",
    script="miscompile.targets.tvm.script:SCRIPT",
    distributions=("apache-tvm", "apache-tvm-ffi"),
    blocks=(16, 32),  # the default tiles of its schedules
    max_opset=22,
    max_ir_version=10,
    dynamic=True,
    devices=("cpu", "cuda"),
    passes=(*_GRAPH, *_LOWERING, *_LOOPS),
    twins=(("s_tir.StmtSimplify", "tirx.StmtSimplify"),),
    masks=_MASKS,
    extra="tvm",
    # By default the code is for any x86-64.
    cpu_caps={"AVX2": CpuCap(words=('{"kind": "llvm"', '{"kind": "llvm", "mcpu": "haswell"'))},
    prepare="miscompile.targets.tvm.about:prepare",
    transforms=(WRAP, SPLICE),
    function_transforms=(WRAP,),
    altering=(SPLICE,),
    settle="miscompile.targets.tvm.relax.transforms:settled",
    converters=r"tvm/relax/frontend/onnx/",
    second_implementation=3,
    library=SPLICE,
    sequences=tuple(PASSES),
    fronts={
        "torch": Front(
            "torch",
            "programs of torch.export",
            "miscompile.targets.tvm.torch_front:TorchTvm",
            ("torch",),
            converters=r"tvm/relax/frontend/torch/",
            script="miscompile.targets.tvm.script:TORCH",
        ),
    },
    switches="observed by structural hashes before and after each pass, switched by PassContext(disabled_pass=...)",
)


def prepare() -> dict[str, str]:
    """Return the variables that keep TVM's thread pool to one thread; its library reads them when it is loaded."""
    return {"TVM_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "TVM_BIND_THREADS": "0"}

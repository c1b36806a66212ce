"""Apache TVM Relax (CPU): a valid model raises an error

A constant of int4 with several elements cannot be imported, because TVM counts two elements for a byte and numpy one:
"TensorCopyFromBytes: size mismatch".

InternalError at compile: Check failed: arr_size == nbytes (1 vs. 2) : TensorCopyFromBytes: size mismatch

Seen with apache-tvm 0.27.0.post1, apache-tvm-ffi 0.1.15.post2, onnx 1.23.2.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import os

os.environ["TVM_NUM_THREADS"] = "1"

import base64
import sys
from functools import cache

import ml_dtypes
import numpy as np
import onnx
import tvm
import tvm_ffi
from onnx import TensorProto, helper
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

CONV_LAYOUTS = {"relax.nn.conv2d": ["NHWC", "OHWI"]}
"""The layouts to which `ConvertLayout` converts images and kernels of convolutions."""

GRAPH_PASSES = (
    ("ConvertToDataflow", ()),
    ("CanonicalizeBindings", ()),
    ("FoldBatchnormToConv2D", ()),
    ("DecomposeOpsForInference", ()),
    ("FoldConstant", ()),
    ("RemoveRedundantReshape", ()),
    ("EliminateCommonSubexpr", ()),
    ("AdjustMatmulOrder", ()),
    ("ExpandMatmulOfSum", ()),
    ("ReorderTakeAfterMatmul", ()),
    ("CombineParallelMatmul", ()),
    ("ReorderPermuteDimsAfterConcat", ()),
    ("FuseTransposeMatmul", ()),
    ("ConvertLayout", (CONV_LAYOUTS,)),
    ("DeadCodeElimination", ()),
    ("TopologicalSort", ()),
    ("DataflowUseInplaceCalls", ()),
)
"""The optional graph passes of `tvm.relax.transform` that preserve a model's meaning, with their arguments.

Each is at the position that its documentation requires: those that match operators of the graph come before the CPU
pipeline, which turns operators into loops; `ReorderPermuteDimsAfterConcat` after `CombineParallelMatmul`, whose results
it rewrites; `DataflowUseInplaceCalls` last, because it alone determines which buffers are overwritten.
"""

FAST_BUILD, FULL_BUILD = {"kind": "llvm", "opt-level": 0}, {"kind": "llvm"}
"""TVM's target without LLVM's optimisations, which take three quarters of the time, and with them."""

UNCHECKED = "tirx.disable_assert"
"""The option that omits the checks of arguments in each function, which are more than half of the machine code."""


def read_model(model):
    """Import a model. The importer treats a size of zero as unknown unless `shape_dict` states it."""
    shapes = {port.name: port.type.tensor_type.shape.dim for port in model.graph.input}
    fixed = {name: [dim.dim_value for dim in dims] for name, dims in shapes.items() if all(map(is_fixed, dims))}
    return from_onnx(model, shape_dict={name: sizes for name, sizes in fixed.items() if 0 in sizes})


def is_fixed(dim):
    """Tell whether a dimension has a fixed size."""
    return bool(dim.HasField("dim_value"))


@cache
def cpu_target(level):
    """Return the target for the CPU: LLVM, which optimises at level `native` only."""
    return tvm.target.Target(FULL_BUILD if level == "native" else FAST_BUILD)


def lowering(level, target):
    """Return the passes that lower a module for the CPU."""
    return relax.get_pipeline("default") if level in ("off", "default") else relax.get_default_pipeline(target)


def behind(passes, pipeline):
    """Return `pipeline` with passes before it, given by their names in `tvm.relax.transform` and their arguments."""
    made = [getattr(relax.transform, name)(*given) for name, given in passes]
    return tvm.transform.Sequential([tvm.transform.Sequential(made), pipeline]) if made else pipeline


def graph_passes(level):
    """Return the graph passes of a level."""
    return GRAPH_PASSES if level in ("full", "native") else ()


def build_module(module, level, disabled, target, pipeline, instruments=()):
    """Compile a module by `pipeline` without the passes `disabled`. Level `off` omits the checks of arguments."""
    with tvm.transform.PassContext(
        opt_level=3,
        disabled_pass=sorted(disabled),
        instruments=list(instruments),
        config={UNCHECKED: level == "off"},
    ):
        mode = "compiled" if level == "compiled" else "bytecode"
        return relax.build(module, target=target, relax_pipeline=pipeline, exec_mode=mode)


def call(machine, arrays, device):
    """Run on arrays; return the outputs as TVM's objects."""
    result = machine["main"](*[tvm.runtime.tensor(array, device) for array in arrays])
    single = isinstance(result, tvm_ffi.Shape) or hasattr(result, "numpy")  # programs of torch always return tuples
    return [result] if single else list(result)


def from_tvm(value):
    """Copy an output. The value of ONNX's Shape is a tuple of integers in Relax, not a tensor."""
    if isinstance(value, tvm_ffi.Shape):
        return np.asarray(list(value), np.int64)
    array = value.numpy()
    return array


nodes = []
inputs = []
outputs = [helper.make_tensor_value_info("c0", TensorProto.INT4, [2])]
constants = [
    helper.make_tensor("c0", TensorProto.INT4, [2], base64.b64decode("AA=="), raw=True),
]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)

feeds = [
    {},
]

OFF = []


def run(level, off=()):
    """Build at `level` without the passes `off`; return the outputs for each feed."""
    target = cpu_target(level)
    pipeline = behind(graph_passes(level), lowering(level, target))
    module = read_model(model)
    executable = build_module(module, level, off, target, pipeline)
    place = tvm.cpu()
    machine = relax.VirtualMachine(executable, place)
    return [[seen(value) for value in call(machine, arrays(feed), place)] for feed in feeds]


def arrays(feed):
    """Return the arrays of a feed."""
    return list(feed.values())


def seen(value):
    """Return an output as numbers; brain floats are widened, other foreign types are bits."""
    array = from_tvm(value)
    array = array.view(np.uint8) if array.dtype.name.startswith("float8") else array
    return array.astype(np.float32) if array.dtype == ml_dtypes.bfloat16 else array


print("tvm", tvm.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
try:
    run("full", OFF)
except Exception as error:
    print("BUG: level full raises", f"{type(error).__name__}: {error}")
    sys.exit(1)
print("the bug does not show")

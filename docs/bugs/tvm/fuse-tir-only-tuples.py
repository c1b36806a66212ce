"""Apache TVM (Relax on the CPU): an error on a valid model with FuseOps, FuseTIR

FuseOps makes a function named "fused" of accesses to a nested tuple, which contains no operator, and FuseTIR refuses
it: 'Check failed: (func_info_.global_name != "fused")'. The default pipeline of the CPU shows it.

Seen with apache-tvm 0.27.0.post1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import tvm
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R


@I.ir_module
class Module:
    @R.function
    def inner(x: R.Tensor((5,), "float32")):
        with R.dataflow():
            y = R.exp(x)
            z = R.sin(x)
            R.output(y, z)
        return ((y, z), y)

    @R.function
    def main(x: R.Tensor((5,), "float32")):
        cls = Module
        with R.dataflow():
            result = cls.inner(x)
            pair = result[0]
            last = pair[1]
            R.output(last)
        return last


target = tvm.target.Target("llvm")
tvm.compile(Module, target, relax_pipeline="default")
print("the generic pipeline compiles it")
try:
    tvm.compile(Module, target, relax_pipeline=relax.get_default_pipeline(target))
except Exception as error:
    print("BUG:", f"{type(error).__name__}: {error}")
    sys.exit(1)
print("the bug does not show")

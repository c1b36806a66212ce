"""Apache TVM (Relax on the CPU): wrong values with FuseOps

FuseOps moves a call that DataflowUseInplaceCalls has made in place in front of another reader of the operand that the
call overwrites. DataflowUseInplaceCalls is in no default pipeline.

Seen with apache-tvm 0.27.0.post1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import tvm
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((5, 7), "int64"), y: R.Tensor((7, 5), "int64"), o: R.Tensor((1, 7), "int64")):
        with R.dataflow():
            transposed = R.permute_dims(y)
            ones = R.broadcast_to(o, (5, 7))
            first = R.multiply(x, ones)
            second = R.multiply(transposed, ones)
            R.output(first, second)
        return first, second


x = np.arange(35, dtype="int64").reshape(5, 7)
feeds = [x, np.full((7, 5), 100, "int64"), np.ones((1, 7), "int64")]
passes = relax.transform


def run(*chosen):
    module = tvm.transform.Sequential(chosen)(Module)
    machine = relax.VirtualMachine(tvm.compile(module, "llvm", relax_pipeline="default"), tvm.cpu())
    return machine["main"](*map(tvm.runtime.tensor, feeds))[0].numpy()


in_place = (passes.DataflowUseInplaceCalls(), passes.LegalizeOps())
print("right without FuseOps:", np.array_equal(run(*in_place), x))
found = run(*in_place, passes.AnnotateTIROpPattern(), passes.FuseOps(), passes.FuseTIR())
if not np.array_equal(found, x):
    print("BUG: x multiplied by ones is", found[0], "instead of", x[0])
    sys.exit(1)
print("the bug does not show")

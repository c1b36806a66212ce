"""Apache TVM (Relax on the CPU): DataflowUseInplaceCalls ends the process

DataflowUseInplaceCalls dies of a segmentation fault on some uses of a tuple that a call of a function returned,
such as that as an argument of another call. The pass is in no default pipeline.

Seen with apache-tvm 0.27.0.post1.

Exit code 1: the bug shows, or a signal ends the process. Exit code 0: it does not.
"""

import tvm
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R


@I.ir_module
class Module:
    """Two functions, the first of which returns a tuple that the second takes."""

    @R.function
    def pair(x: R.Tensor((2,), "float32")) -> R.Tuple(R.Tensor((2,), "float32"), R.Tensor((2,), "float32")):
        with R.dataflow():
            r = (x, x)
            R.output(r)
        return r

    @R.function
    def first(
        p: R.Tuple(R.Tensor((2,), "float32"), R.Tensor((2,), "float32")),
    ) -> R.Tensor((2,), "float32"):
        with R.dataflow():
            a = p[0]
            r = R.abs(a)
            R.output(r)
        return r

    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        cls = Module
        with R.dataflow():
            q = cls.pair(x)
            s = cls.first(q)
            y = R.negative(s)
            R.output(y)
        return y


print("tvm", tvm.__version__)
relax.analysis.well_formed(Module)  # raises if it is not
print("DIES: the pass ends this process", flush=True)
relax.transform.DataflowUseInplaceCalls()(Module)
print("the bug does not show")

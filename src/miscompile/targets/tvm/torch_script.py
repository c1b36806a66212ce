"""The lines that a script of a program of torch behind TVM consists of."""

from miscompile.codegen.literals import literal
from miscompile.targets.about import FrontLines
from miscompile.targets.tvm.pipelines import FAST_BUILD

_TARGET = literal(FAST_BUILD)

TORCH = FrontLines(
    setup=("import os", "", 'os.environ["TVM_FFI_DISABLE_TORCH_C_DLPACK"] = "1"  # would be compiled first', ""),
    imports=("import tvm", "from tvm import relax", "from tvm.relax.frontend.torch import from_exported_program"),
    run=f'''\
def converted(model, inputs):
    """Export the model, import it into Relax, compile it; return its outputs."""
    module = from_exported_program(torch.export.export(model, tuple(inputs)))
    target = tvm.target.Target({_TARGET})
    with tvm.transform.PassContext(opt_level=3):
        executable = tvm.compile(module, target)
    machine = relax.VirtualMachine(executable, tvm.cpu())
    outputs = machine["main"](*[to_tvm(value) for value in inputs])
    return [widened(output.numpy()) for output in outputs]


def to_tvm(value):
    """Return a tensor as an array of TVM's."""
    if value.dtype == torch.bfloat16:
        import ml_dtypes

        return tvm.runtime.tensor(value.view(torch.int16).numpy().view(ml_dtypes.bfloat16))
    return tvm.runtime.tensor(value.numpy())


def widened(array):
    """Return an output; types that numpy lacks are widened."""
    return array.astype("float32") if "float" in array.dtype.name and array.dtype.kind != "f" else array
''',
    versions='"torch", torch.__version__, "tvm", tvm.__version__',
)

"""The parts of standalone scripts for programs of torch compiled by TVM."""

from miscompile.targets.about import FrontLines

TORCH = FrontLines(
    setup=("import os", "", 'os.environ["TVM_FFI_DISABLE_TORCH_C_DLPACK"] = "1"  # would be compiled first', ""),
    sources=("miscompile.targets.tvm.pipelines", "miscompile.targets.tvm.runner"),
    imports=("import tvm", "from tvm import relax", "from tvm.relax.frontend.torch import from_exported_program"),
    run='''\
def converted(model, inputs):
    """Export the model, import it into Relax, compile it; return its outputs."""
    module = from_exported_program(torch.export.export(model, tuple(inputs)))
    target = cpu_target("default")
    executable = build_module(module, "default", (), target, lowering("default", target))
    machine = relax.VirtualMachine(executable, tvm.cpu())
    return [widened(from_tvm(output)) for output in call(machine, map(array_of, inputs), tvm.cpu())]


def array_of(value):
    """Return a tensor as an array."""
    is_bfloat16 = value.dtype == torch.bfloat16
    return to_array(value.view(torch.int16).numpy(), 16) if is_bfloat16 else value.numpy()


def widened(array):
    """Return an output; types that numpy lacks are widened."""
    return array.astype("float32") if "float" in array.dtype.name and array.dtype.kind != "f" else array
''',
    versions='"torch", torch.__version__, "tvm", tvm.__version__',
)

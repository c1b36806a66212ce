"""The parts of standalone scripts for programs of torch compiled by TVM."""

from miscompile.targets.about import FrontLines

TORCH = FrontLines(
    setup=("import os", "", 'os.environ["TVM_FFI_DISABLE_TORCH_C_DLPACK"] = "1"  # would be compiled first', ""),
    sources=(
        "miscompile.targets.torch.runner",
        "miscompile.targets.tvm.torch_runner",
        "miscompile.targets.tvm.pipelines",
        "miscompile.targets.tvm.runner",
    ),
    imports=("import tvm", "from tvm import relax"),
    run='''\
def converted(model, inputs):
    """Export the model, import it into Relax, compile it; return its outputs."""
    module, level = import_exported(export_module(model, tuple(inputs))), LEVELS["full"]
    target = cpu_target(level)
    executable = build_module(module, level, (), target, lowering(level, target))
    machine = relax.VirtualMachine(executable, tvm.cpu())
    arrays = [to_array(*words_of(value)) for value in inputs]
    return [widened(from_tvm(output)) for output in call(machine, arrays, tvm.cpu())]


def widened(array):
    """Return an output; types that numpy lacks are widened."""
    return array.astype("float32") if "float" in array.dtype.name and array.dtype.kind != "f" else array
''',
    versions='"torch", torch.__version__, "tvm", tvm.__version__',
)

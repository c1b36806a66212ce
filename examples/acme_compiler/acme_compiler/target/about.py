"""What miscompile knows of Acme without importing it."""

from miscompile.targets.about import About, ScriptLines

ABOUT = About(
    name="acme",
    title="Acme",
    kinds=("onnx",),
    levels=("off", "full"),
    adapter="acme_compiler.target.adapter:Acme",
    script="acme_compiler.target.about:SCRIPT",
    distributions=("acme-compiler",),
    max_opset=22,
    max_ir_version=10,
    passes=("RemoveIdentity", "MergeTransposes", "AddNegToSub", "DeadCode"),
)
SCRIPT = ScriptLines(
    imports=("from acme_compiler import __version__, compile_model",),
    levels={"off": '"off"', "full": '"full"'},
    run="def run(level, off=()):\n    built = compile_model(model.SerializeToString(), level, off)\n"
    "    return [built.run(feed) for feed in feeds]\n",
    versions="__version__",
)

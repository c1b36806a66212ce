"""The description of PyTorch as a library, which does not import it."""

from miscompile.targets.about import About

ABOUT = About(
    name="torch",
    title="PyTorch (eager)",
    role="library",
    kinds=("torch",),
    levels=("off", "full"),
    adapter="miscompile.targets.torch.adapter:Torch",
    script="",
    distributions=("torch",),
    max_opset=0,
    max_ir_version=0,
    extra="inductor",
    switches="operators are called one by one: there are no passes, and both levels are the same",
)

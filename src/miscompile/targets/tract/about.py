"""The description of tract, which does not import it."""

from miscompile.targets.about import About

_MASKS = (
    # Inside of a body the same node fails as outside.
    (r'(?:\d+: Infering facts\s+\d+: Failed analyse for node #\d+ "[^"]*" [\w.]+\s+)+', ""),
    # The facts and the patch that follow are those of the program at hand.
    (r"(?s)Trying to substitute a .*", "Trying to substitute a fact by another"),
    (r"in output_facts invocation for [^:\n]*:", "in output_facts invocation of"),
    (r"(?s)(Invalid slicing range)\b.*", r"\1"),
    (r"(?s)(ScatterND index -?\d+ out of bounds)\b.*", r"\1"),
    (r"(?s)(Attempt to squeeze an axis which dimension is not one)\b.*", r"\1"),
    (r"(?s)(Reshape volume mismatch|Neither sizes nor scales makes sense|Inconsistent matmul):.*", r"\1"),
    (r"(Duplicate node name):.*", r"\1"),
)

ABOUT = About(
    name="tract",
    title="tract",
    kinds=("onnx",),
    levels=("off", "full"),
    adapter="miscompile.targets.tract.adapter:Tract",
    script="miscompile.targets.tract.script:SCRIPT",
    distributions=("tract",),
    max_opset=22,
    max_ir_version=10,
    extra="tract",
    prepare="miscompile.targets.tract.environment:prepare",
    masks=_MASKS,
    unoptimised=False,
    quick=True,
    switches="the library always simplifies and optimises: it has no switches, and both levels are the same",
)

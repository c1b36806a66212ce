"""The description that all optimisers share, and the common parts of their standalone scripts."""

from collections.abc import Sequence
from typing import Any

from miscompile.targets.about import About, ScriptLines

EXECUTION = ("miscompile.targets.ort_values", "miscompile.targets.optimisers.execution")
"""Modules of which every script contains functions."""

_RUN = '''\
{% set evaluated = options.get("executor") == "reference" %}
def run(level, off=()):
    """Optimise at `level` without the passes `off`, and execute the result; return the outputs for each feed."""
    payload = model.SerializeToString()
    if level != "off":
        payload = optimised(payload, lambda before: @CALL@@DROPS@)
    taken = {value.name for value in onnx.load_model_from_string(payload).graph.input}
    fed = [{name: array for name, array in feed.items() if name in taken} for feed in feeds]
{% if types %}
    kinds = {name: kind for name, kind in types.items() if name in taken}
{% endif %}
    names = [output.name for output in model.graph.output]
{% if not evaluated %}
    session = start_plain(payload)
{% if exotic %}
    words = [run_words(session, names, feed, {{ "kinds" if types else "{}" }}) for feed in fed]
    found = [[None if value is None else seen(*value) for value in result] for result in words]
{% else %}
    found = [run_arrays(session, names, feed) for feed in fed]
{% endif %}
{% else %}
    given = {{ "[foreign(feed, kinds) for feed in fed]" if types else "fed" }}
    found = [[{{ "plain(value)" if exotic else "value" }} for value in evaluate(payload, feed)] for feed in given]
{% endif %}
    for feed, result in zip(fed, found):
        sizes = {name: np.shape(array) for name, array in (*feed.items(), *zip(names, result)) if array is not None}
        require_sizes(onnx.load_model_from_string(payload), sizes)
    return found
{% if exotic and not evaluated %}


def seen(kind, words):
    """Return an output as numbers; 16-bit brain floats are widened, other foreign types stay bits."""
    return (words.astype(np.uint32) << 16).view(np.float32) if kind == TensorProto.BFLOAT16 else words
{%- elif exotic %}


def plain(value):
    """Return an output as an array; brain floats are widened, other foreign types are bits."""
    if value is None or value.dtype.name in np.sctypeDict:
        return value
    return value.astype(np.float32) if value.dtype.name == "bfloat16" else value.view(np.uint8)
{%- endif %}
'''


MASKS = (
    # The checker names the node at fault only if it has a name, and the bodies around it.
    (r"(?:\[ShapeInferenceError\] Inference error\(s\): \(op_type:\w+(?:, node name: [^)]*)?\): )+", "<any> "),
    (r"\(op_type:\w+(?:, node name: [^)]*)?\)", "<any>"),
    # A value that the optimiser has lost is missed by whatever operator reads it.
    (r"(?<=of node: )\s*name:.*? OpType: \w+", "<any>"),
    (r"\s*==> Context:.*", ""),
)
"""What onnx's checker says about the place in the program, which one bug leaves wherever it strikes."""

OPTIONS = {"executor": "what runs the optimised model: onnxruntime (default) or reference (onnx's evaluator)"}
"""The options that every optimiser has."""


def optimiser(name: str, title: str, passes: Sequence[str], **more: Any) -> About:  # noqa: ANN401 - fields of About
    """Return the description of an optimiser whose folder is called `name`.

    `more` are further fields; `masks` come before those that all optimisers have.
    """
    folder = f"miscompile.targets.{name}"
    given: dict[str, Any] = {
        "kinds": ("onnx",),
        "levels": ("off", "full"),
        "adapter": f"{folder}.adapter:{title}",
        "script": f"{folder}.script:SCRIPT",
        "optimised": f"{folder}.runner:optimise",
        "distributions": (name, "onnx", "onnxruntime"),
        "max_opset": 22,
        "max_ir_version": 10,
        "dynamic": True,
        "functions": True,
        "executors": ("onnxruntime", "reference"),
        "options": OPTIONS,
        "extra": name,
    }
    more["masks"] = (*more.get("masks", ()), *MASKS)
    return About(**{"name": name, "title": title, "passes": tuple(passes), **given, **more})


def script_lines(
    about: About,
    versions: str,
    imports: Sequence[str] = (),
    drops_inputs: bool = False,
    call: str = "optimise(before, level, off)",
) -> ScriptLines:
    """Return the script lines of the optimiser `about`, whose runner defines the function of the template `call`.

    `versions` is the beginning of a list of expressions, for which `imports` are import lines.
    """
    run = _RUN.replace("@CALL@", call).replace("@DROPS@", ", drops_inputs=True" if drops_inputs else "")
    return ScriptLines(
        sources=(*EXECUTION, f"miscompile.targets.{about.name}.runner"),
        levels={level: f'"{level}"' for level in about.levels},
        run=run,
        versions=", ".join(filter(None, (versions, '"onnxruntime", ort.__version__'))),
        imports=("import onnxruntime as ort", *imports),
    )

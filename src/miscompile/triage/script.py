"""The standalone script writer: a finding as a Python file that imports numpy, onnx and the compiler only.

What is the same for all targets (model, feeds, decision) is prepared here; the target's template (`About.script`)
lays it out with the compiler's own calls. A template gets these variables:

- `title`, `message`, `versions` ({distribution: version}), `kind`, `rule`, `stage`;
- `model`, `feeds`: statements that define `model`, and `feeds`, a list of dicts; `types`: {input: name in
  TensorProto} of the inputs that numpy has no type for; `exotic`: True when an input or output has no numpy type;
- `imports`: what the statements want from onnx; `base64`: True when they need that module;
- `faulty`, `reference`: the builds (reference is None when no build works); `culprits`: names of the passes to blame;
- `off`: statement lines that define OFF, the passes that are off in the faulty build;
- `shows`, `dies`: the words that announce a bug (see `confirm`);
- `declared`: Python source of a pair, numpy's name of the type and the sizes (None: not fixed) that the bad output
  must have, or an empty text when its shape is not declared; held against an output where no build works;
- `feed`, `output`: where the bad output is (indices): the decision is about that one alone, because another output
  may have another sensitivity;
- `tolerance`: a float literal, `reason`: one line that says why it is sound; `signal`: of a death, else 0.

The filter `literal` writes a string or a sequence of strings as Python source.
"""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jinja2 import Environment, StrictUndefined

from miscompile.base.errors import UsageError
from miscompile.core.case import Case, Port
from miscompile.core.outcome import Crashed, Outcome
from miscompile.core.verdict import Evidence
from miscompile.graph.read import read
from miscompile.targets.registry import load_attribute, parse_target
from miscompile.triage.bisect import expand
from miscompile.triage.layout import array, assign, quoted
from miscompile.triage.signature import symptom_of
from miscompile.triage.spelling import native, onnx_name, spell_feeds, spell_model

SHOWS = "BUG:"
"""A script prints a line that begins with this before it exits with 1."""
DIES = "DIES:"
"""A script prints a line that begins with this before the step that is going to kill it."""

_SPREAD = 10.0
_TEXT_WIDTH = 110
_FEW = 3
_IMPORTS = ("TensorProto", "helper", "numpy_helper")


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How large a difference may be without being a bug, and why that is sound."""

    value: float
    reason: str


def write_script(
    case: Case,
    evidence: Evidence,
    outcome: Outcome | None = None,
    *,
    culprits: Sequence[str] = (),
    versions: Mapping[str, str] | None = None,
    title: str = "",
) -> str:
    """Return the script that shows the violation `evidence` of `case`; `outcome` is what came of the faulty run.

    Exit code 1 means that the bug shows, 0 that it does not; for deaths the script dies. Raises ModelError when
    the program is no ONNX model, UsageError when the target has no template.
    """
    spec = parse_target(evidence.faulty.target)
    if not spec.about.script:
        raise UsageError(f"target {spec.about.name} has no script template; name one in its about.py")
    model = read(case.program.payload)
    names = [port.name for port in case.program.inputs]
    ports = (*case.program.inputs, *case.program.outputs)
    source = spell_model(model)
    feeds = spell_feeds([dict(zip(names, feed, strict=True)) for feed in case.feeds])
    exotic = any(not native(port.dtype) for port in ports)
    tolerance = tolerance_of(evidence)
    faulty = evidence.faulty.build
    signature = symptom_of(evidence, outcome)
    guilty = sorted(expand(culprits, spec.about.twins))
    template = Environment(undefined=StrictUndefined, keep_trailing_newline=True, trim_blocks=True, lstrip_blocks=True)
    template.filters["literal"] = _literal
    text = template.from_string(load_attribute(spec.about.script)).render(
        title=title or _title(spec.about.title, evidence, culprits),
        message="\n".join(textwrap.wrap(_one_line(evidence.message), _TEXT_WIDTH)),
        versions=dict(versions or {}),
        kind=evidence.kind,
        options=spec.options,
        rule=evidence.rule,
        stage=signature.stage,
        model=source,
        feeds=feeds,
        types={port.name: onnx_name(port.dtype) for port in case.program.inputs if not native(port.dtype)},
        exotic=exotic,
        imports=[name for name in _IMPORTS if f"{name}." in source + feeds or (exotic and name == "TensorProto")],
        base64="base64." in source + feeds,
        faulty=faulty,
        reference=evidence.reference.build if evidence.reference else None,
        culprits=[name for name in guilty if name not in faulty.disabled],
        off=_off(sorted(faulty.disabled)),
        feed=int(evidence.details.get("feed", 0)),
        output=_output(case, evidence),
        declared=_declared(case.program.outputs[_output(case, evidence)]),
        tolerance=repr(float(f"{tolerance.value:.6g}")),
        reason=tolerance.reason,
        signal=outcome.signal if isinstance(outcome, Crashed) else 0,
        shows=SHOWS,
        dies=DIES,
    )
    return str(text)


def tolerance_of(evidence: Evidence) -> Tolerance:
    """Return the tolerance under which the script decides.

    The Monte-Carlo rule allows each element twice its own sensitivity, which is at least a tenth of the largest
    one in its tensor; so ten times what the worst element is allowed covers every element.
    """
    if evidence.rule == "fixed":
        allowed = float(evidence.details.get("allowed", 1e-3))
        return Tolerance(allowed, "A fixed threshold, by request.")
    if evidence.rule != "monte-carlo":
        return Tolerance(0.0, "Every correct implementation gives the same bits here, so no difference is allowed.")
    allowed, difference = float(evidence.details["allowed"]), float(evidence.details["difference"])
    if difference > _SPREAD * allowed:
        reason = "Rounding every float operation differently moves no element of this graph by half as much."
        return Tolerance(_SPREAD * allowed, reason)
    return Tolerance(allowed, "Rounding every float operation differently moves the worst element by half as much.")


def _output(case: Case, evidence: Evidence) -> int:
    """Index of the bad output: as the oracle says, else by its name, else the first."""
    names = [port.name for port in case.program.outputs]
    by_name = names.index(evidence.output) if evidence.output in names else 0
    return int(evidence.details.get("output", by_name))


def _declared(port: Port) -> str:
    """Type and sizes as the script sees them: brain floats are widened, strings are objects, the rest are bits."""
    if port.shape is None:
        return ""
    name = {"bfloat16": "float32", "string": "object"}.get(port.dtype, port.dtype if native(port.dtype) else "uint8")
    return f'("{name}", {tuple(size if isinstance(size, int) else None for size in port.shape)})'


def _title(target: str, evidence: Evidence, culprits: Sequence[str]) -> str:
    what = {
        "wrong": "wrong values",
        "missing": "an output is missing",
        "shape": "an output has the wrong shape",
        "dtype": "an output has the wrong type",
        "exception": "a valid model raises an error",
        "death": "the process dies",
        "hang": "no end",
        "memory": "memory without bound",
    }[evidence.kind]
    return f"{target}: {what}" + (f" with {' and '.join(culprits)}" if culprits else "")


def _one_line(message: str) -> str:
    """One printable line that can stand in a docstring."""
    line = " ".join(message.split()).replace("\\", "/").replace('"""', "'''")
    return "".join(letter if letter.isprintable() else "?" for letter in line)[:400].rstrip('"')


def _off(names: Sequence[str]) -> str:
    if not names:
        return "OFF = []"
    if len(names) <= _FEW:
        return assign("OFF", array([quoted(name) for name in names]))
    lines = textwrap.indent("\n".join(textwrap.wrap(" ".join(names), _TEXT_WIDTH - 4)), "    ")
    return f'OFF = """\n{lines}\n""".split()'


def _literal(value: str | Sequence[str]) -> str:
    return quoted(value) if isinstance(value, str) else f"[{', '.join(map(quoted, value))}]"

"""Standalone scripts of migrated findings, in the library's own terms: the operator, its tensors, a check.

Exit code 1 means that the bug shows, 0 that it does not; for deaths and hangs the script dies (see `triage.confirm`).
"""

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from jinja2 import Environment, StrictUndefined

from miscompile.base.errors import UsageError
from miscompile.codegen.layout import array, assign
from miscompile.codegen.literals import array_code
from miscompile.core.tensor import Tensor
from miscompile.core.verdict import FindingKind
from miscompile.instances.instance import Instance
from miscompile.targets.about import FrontLines
from miscompile.targets.registry import load_attribute, parse_target
from miscompile.triage.inlining import import_blocks, inlined
from miscompile.triage.script import DIES, PATIENCE, SHOWS, one_line

_CALLS = {
    "torch": "with torch.no_grad():\n    expected = flat(model(*[value.clone() for value in inputs]))",
    "keras": "expected = flat(model(inputs, training=False))",
}
"""The statements that compute the right results with a library."""

_WIDTH = 110


@dataclass(frozen=True, slots=True)
class Failure:
    """The failure that a script shows. `error` is the class of an exception; `output`, `place` and `allowed` give the
    index of a wrong value and its allowed difference; `expected` are the right results."""

    kind: FindingKind
    stage: str
    message: str
    error: str
    output: int
    place: int
    allowed: float
    expected: tuple[Tensor, ...]


def write_front_script(
    instance: Instance, target: str, failure: Failure, versions: Mapping[str, str], *, constants: bool = False
) -> str:
    """Return the script that shows a failure of the front end `target` (a spec with `via`).

    With `constants` all tensors but the first are the model's own, as in the test that failed. Raises UsageError when
    the front end has no script lines.
    """
    spec = parse_target(target)
    if spec.front is None or not spec.front.script:
        raise UsageError(f"{target} has no script lines; name them in its about.py")
    lines = load_attribute(spec.front.script)
    assert isinstance(lines, FrontLines)
    source: Callable[..., str] = load_attribute(f"miscompile.targets.{instance.library}.source:source")
    spelled = _spelled(failure) if lines.isolated else ""
    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    values = {
        "title": f"{spec.about.title}: {_TITLES[failure.kind]} for {instance.api}",
        "message": "\n".join(textwrap.wrap(one_line(failure.message, 1200), _WIDTH)),
        "versions": versions,
        "lines": lines,
        "source": source(instance, constants=constants).strip("\n"),
        "expected": spelled or _CALLS[instance.library],
        "failure": failure,
        "dies": failure.kind in ("death", "hang"),
        "SHOWS": SHOWS,
        "DIES": DIES,
        "PATIENCE": PATIENCE,
    }
    skeleton = environment.from_string(_TEMPLATE)
    found = inlined(skeleton.render(values, blocks=(), functions=""), lines.sources, (*_IMPORTS, *lines.imports))
    blocks = [block for block in import_blocks(found.imports) if block]
    return skeleton.render(values, blocks=blocks, functions=found.text)


_IMPORTS = ("import base64, signal, sys, zlib", "import numpy as np")
"""Imports that the template may use."""

_TITLES: Mapping[FindingKind, str] = {
    "wrong": "wrong result",
    "missing": "missing output",
    "shape": "result of another shape",
    "dtype": "result of another type",
    "exception": "error",
    "death": "crash",
    "hang": "hang",
    "memory": "unbounded memory",
    "accepted": "invalid program accepted",
}


def _spelled(failure: Failure) -> str:
    """Return the statement that defines the right results."""
    values = [array_code(_plain(value)) for value in failure.expected]
    return assign("expected", array(values))


def _plain(value: Tensor) -> Tensor:
    """Return a tensor as scripts see it: brain floats are widened."""
    return Tensor("float32", np.asarray(value.numbers())) if value.dtype == "bfloat16" else value


_TEMPLATE = '''\
"""{{ title }}

{{ message }}

Seen with {% for name, version in versions.items() %}{{ name }} {{ version }}{{ ", " if not loop.last }}{% endfor %}.

{% if dies %}
This script dies when the bug shows. Exit code 0: it does not show.
{% else %}
Exit code 1: the bug shows. Exit code 0: it does not.
{% endif %}
"""

{% for line in lines.setup %}
{{ line }}
{% endfor %}
{% for block in blocks %}
{% for line in block %}
{{ line }}
{% endfor %}

{% endfor %}
{{ source }}


{% if functions %}
{{ functions }}


{% endif %}
{{ lines.run.strip("\\n") }}


print("versions:", {{ lines.versions }})
{{ expected }}
{% if dies %}
print("{{ DIES }} the next step does not return", flush=True)
{% if failure.kind == "hang" %}
signal.alarm({{ PATIENCE }})
{% endif %}
converted(model, inputs)
print("no bug: it returned")
{% elif failure.kind == "exception" %}
try:
    converted(model, inputs)
except BaseException as error:
    if type(error).__name__ != "{{ failure.error }}":
        raise
    print("{{ SHOWS }}", type(error).__name__, str(error)[:1000])
    sys.exit(1)
print("no bug: it runs")
{% else %}
actual = converted(model, inputs)
if len(actual) != len(expected):
    print("{{ SHOWS }}", len(actual), "outputs instead of", len(expected))
    sys.exit(1)
want, got = np.asarray(expected[{{ failure.output }}]), np.asarray(actual[{{ failure.output }}])
{% if failure.kind == "dtype" %}
if got.dtype != want.dtype:
    print("{{ SHOWS }} output {{ failure.output }} is", got.dtype, "instead of", want.dtype)
    sys.exit(1)
{% else %}
if got.shape != want.shape:
    print("{{ SHOWS }} output {{ failure.output }} has shape", got.shape, "instead of", want.shape)
    sys.exit(1)
{% endif %}
{% if failure.kind == "wrong" %}
print("expected:", want.ravel()[:20], "actual:", got.ravel()[:20])
# The largest admitted error of this element, by its type and its sensitivity to rounding of the inputs.
ALLOWED = {{ "%r" % failure.allowed }}
right, found = want.flat[{{ failure.place }}], got.flat[{{ failure.place }}]
same = right == found or (right != right and found != found)
if not same and not abs(np.asarray(found, complex) - np.asarray(right, complex)) <= ALLOWED:
    print("{{ SHOWS }} element {{ failure.place }} of output {{ failure.output }} is", found, "instead of", right)
    sys.exit(1)
{% endif %}
print("no bug: the results agree")
{% endif %}
'''

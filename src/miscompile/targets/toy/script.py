"""The template of a reproducer for the toy; its variables are described in the script writer.

Unlike the other targets' scripts it imports this package, since the compiler is part of it. `options`, where the
writer gives it, holds the options of the target spec; without it every planted bug is on.
"""

TEMPLATE = '''\
"""{{ title }}

{{ message }}

{% if kind in ("death", "hang") %}
This script dies when the bug shows. Exit code 0: it does not show.
{% else %}
Exit code 1: the bug shows. Exit code 0: it does not.
{% endif %}
"""

{% if base64 %}
import base64
{% endif %}
import resource
import signal
import sys

import numpy as np
import onnx
{% if imports %}
from onnx import {{ imports | join(", ") }}
{% endif %}

from miscompile.core.case import Program
from miscompile.core.run import Build
from miscompile.core.tensor import tensor
from miscompile.targets.toy.adapter import ToyAdapter

{{ model }}

{{ feeds }}

BUGS = {{ (options.get("bugs", "none") if options is defined else "all") | literal }}
CULPRITS = {{ culprits | literal }}
{{ off }}


def run(level, off=()):
    """Build at `level` without the passes `off`; return the outputs for each feed."""
    program = Program("onnx", model.SerializeToString(), (), ())
    session = ToyAdapter(bugs=BUGS).build(program, Build(level, frozenset(off)))
    names = [value.name for value in model.graph.input]
    results = [session.run(tuple(tensor(np.asarray(feed[name])) for name in names if name in feed)) for feed in feeds]
    return [[None if output is None else output.array for output in result] for result in results]


{% if kind in ("wrong", "missing", "shape", "dtype") %}
# {{ reason }}
TOLERANCE = {{ tolerance }}


def problem(want, got):
    """Say what is wrong with `got`; None if nothing is."""
    if got is None:
        return "the output is missing"
    if (want.dtype, want.shape) != (got.dtype, got.shape):
        return f"{got.dtype} of shape {got.shape} instead of {want.dtype} of shape {want.shape}"
    right = np.isclose(got, want, rtol=0, atol=TOLERANCE, equal_nan=True) if want.dtype.kind == "f" else got == want
    return None if right.all() else f"{got.tolist()} instead of {want.tolist()}"


def compare(expected, actual):
    """Return one line for every output of every feed that is wrong."""
    pairs = [pair for wants, gots in zip(expected, actual, strict=True) for pair in zip(wants, gots, strict=True)]
    return [text for text in (problem(want, got) for want, got in pairs) if text]


{% set working = reference if reference is not none else {"level": "off", "disabled": []} %}
expected = run({{ working.level | literal }}{{ ", " ~ (working.disabled | sort | literal) if working.disabled }})
found = compare(expected, run({{ faulty.level | literal }}, OFF))
{% if culprits %}
healed = not compare(expected, run({{ faulty.level | literal }}, [*OFF, *CULPRITS]))
print("without", *CULPRITS, "the results are", "right" if healed else "wrong as well")
{% endif %}
if found:
    print("{{ shows }}", *found, sep="\\n")
    sys.exit(1)
{% elif kind in ("exception", "memory") %}
{% if kind == "memory" %}
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))  # bytes
{% endif %}
onnx.checker.check_model(model, full_check=True)
try:
    run({{ faulty.level | literal }}, OFF)
except Exception as error:
    print("{{ shows }} level {{ faulty.level }} raises", f"{type(error).__name__}: {error}")
    sys.exit(1)
{% else %}
signal.alarm(30)  # seconds
print("{{ dies }} level {{ faulty.level }} kills this process", flush=True)
run({{ faulty.level | literal }}, OFF)
{% endif %}
print("the bug does not show")
'''

"""The device of a build, and its transform where an adapter applies it, in standalone scripts.

A script's `run(level, off)` has no parameter for the device, because nearly all scripts use the CPU. If one of the
two builds is for another device, PLACEMENT determines the device of a call: by the level if the levels differ,
otherwise by `off`, which is only passed for the faulty build.

Some transforms need data that only the compiler has (a file that it saved, a table), so they are applied in the
compiler's process. The program remains the case's own; for the oracle the transform is another way to build it.
"""

from collections.abc import Mapping
from typing import Any

from miscompile.base.specs import Spec, parse_options


def own_transform(transform: Spec | None, kinds: Mapping[str, type[Any]]) -> Any:  # noqa: ANN401 - one of `kinds`
    """Return the options of `transform` as an instance of the one of `kinds` that it names; None if it names none.

    `kinds` contains a frozen dataclass for each name. Raises SpecError for unknown options.
    """
    if transform is None or transform.name not in kinds:
        return None
    return parse_options(kinds[transform.name], dict(transform.options), transform.name)


PRESENTED = """\
{% set transform = faulty.transform %}
{% set presented = transform.name if transform else "" %}
{% set alike = reference is not none and reference.transform == transform %}
{% if alike %}
{% set sees = "True" %}
{% elif reference is not none and reference.disabled %}
{% set sees = "level == " ~ levels[faulty.level] %}
{% else %}
{% set sees = "off is not None" %}
{% endif %}
{% set usual = {"seed": "0", "format": "onnx", "stage": "compiled", "share": "0.5"} %}
{% set given = dict(usual, **dict(transform.options if transform else ())) %}
"""
"""Begins a template of `run`, and of a prelude, and sets: `presented`, the name of the faulty build's transform, of
which a target must make nothing where it is not among its own; `given`, its options; `alike`, whether both builds see
it; `sees`, inside `run(level, off=None)` the expression that tells whether a call is for a build that does (the faulty
build says which passes are off, if only that none is)."""


PLACEMENT = """\
{% set other = reference.device if reference is not none else faulty.device %}
{% set placed = faulty.device != "cpu" or other != "cpu" %}
{% set gpu = faulty.device if faulty.device != "cpu" else other %}
{% set told = reference is not none and other != faulty.device and reference.level == faulty.level %}
{% if reference is none or other == faulty.device %}
{% set where = '"%s"' % faulty.device %}
{% elif told %}
{% set where = '"%s" if off is None else "%s"' % (other, faulty.device) %}
{% else %}
{% set where = '"%s" if level == %s else "%s"' % (faulty.device, levels[faulty.level], other) %}
{% endif %}
{% set nothing = "None" if told else "()" %}
"""
"""The beginning of a template of `run` or of a prelude. It sets `placed`, whether a build is for another device than
the CPU; `gpu`, that device; `where`, an expression for the device of a call inside `run`; `nothing`, the default of
the parameter `off`, which is None if `where` must detect whether `off` was passed; `told`, whether it must."""

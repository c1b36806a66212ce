"""Transforms that an adapter applies itself: how their options are read, and how a script says which build has them.

Such a transform is applied where the compiler runs, out of what only the compiler has (a file that it saved, a table of
its own). The program stays the case's own; to the oracle the transform is one more way to build it.
"""

from collections.abc import Mapping
from typing import Any

from miscompile.base.specs import Spec, parse_options


def own_transform(transform: Spec | None, kinds: Mapping[str, type[Any]]) -> Any:  # noqa: ANN401 - one of `kinds`
    """Return the options of `transform` as an instance of that one of `kinds` that it names; None where it names none.

    `kinds` holds a frozen dataclass for each name. Raises SpecError for unknown options.
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

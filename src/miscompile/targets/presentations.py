"""Options of transforms that an adapter applies, and their representation in standalone scripts.

Such a transform needs data that only the compiler has (a file that it saved, a table), so it is applied in the
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

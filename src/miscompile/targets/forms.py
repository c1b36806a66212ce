"""Forms of a program that an adapter presents itself: how their options are read, and how a script says who sees them.

Such a form is made where the compiler runs, out of what only the compiler has (a file that it saved, a table of its
own). The program stays the case's own; to the oracle the form is one more way to build it.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from miscompile.base.specs import parse_options, split_spec


def own_form(form: str, kinds: Mapping[str, type[Any]]) -> Any:  # noqa: ANN401 - one of `kinds`
    """Return the options of `form` as an instance of that one of `kinds` that it names; None where it names none.

    `kinds` holds a frozen dataclass for each name of a form. Raises SpecError for unknown options.
    """
    if not form:
        return None
    name, options = split_spec(form)
    kind = kinds.get(name)
    return None if kind is None else parse_options(kind, options, name)


def source_of(file: str) -> str:
    """Return what stands in `file`, a path from this folder, for the text of a script.

    That is all but its docstring, remarks to linters, and imports from this package.
    """
    text = Path(__file__).parent.joinpath(file).read_text("utf-8").partition('"""\n\n')[2]
    return re.sub(r"  # noqa.*|^from miscompile.*\n", "", text, flags=re.MULTILINE).strip()


PRESENTED = """\
{% set presented = faulty.form.partition("{")[0] %}
{% set alike = reference is not none and reference.form == faulty.form %}
{% if alike %}
{% set sees = "True" %}
{% elif reference is not none and reference.disabled %}
{% set sees = "level == " ~ levels[faulty.level] %}
{% else %}
{% set sees = "off is not None" %}
{% endif %}
{% set given = namespace(seed="0", format="onnx", stage="compiled", share="0.5") %}
{% for item in faulty.form.partition("{")[2][:-1].split(",") %}
{% set key, _, value = item.partition("=") %}
{% if key.strip() == "seed" %}
{% set given.seed = value.strip() %}
{% elif key.strip() == "format" %}
{% set given.format = value.strip() %}
{% elif key.strip() == "stage" %}
{% set given.stage = value.strip() %}
{% elif key.strip() == "share" %}
{% set given.share = value.strip() %}
{% endif %}
{% endfor %}
"""
"""Begins a template of `run`, and of a prelude, and sets: `presented`, the name of the faulty build's form, of which a
target must make nothing where it is not among its own; `given`, its options; `alike`, whether both builds see it;
`sees`, inside `run(level, off=None)` the expression that tells whether a call is for a build that does (the faulty
build says which passes are off, if only that none is)."""

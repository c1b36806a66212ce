"""Selection of the device of a build in a standalone script.

A script's `run(level, off)` has no parameter for the device, because nearly all scripts use the CPU. If one of the
two builds is for another device, the lines below determine the device of a call: by the level if the levels differ,
otherwise by `off`, which is only passed for the faulty build.
"""

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

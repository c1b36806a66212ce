"""How a standalone script says which device a build is for.

A script's `run(level, off)` does not get a device, because nearly all scripts are about the CPU. Where one of the two
builds is for another device, the lines below work out which it is: by the level where the levels differ, else by
`off`, which only the faulty build is called with.
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
"""Begins a template of `run`, and of a prelude, and sets: `placed`, whether a build is for another device than the CPU;
`gpu`, that device; `where`, inside `run` the expression that gives the device of a call; `nothing`, the default of the
parameter `off`, which is None where `where` needs to know whether it was given; `told`, whether that is so."""

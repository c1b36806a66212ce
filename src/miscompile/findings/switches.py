"""What a finding needs besides the compiler's defaults: a bug that only a switch shows is no bug of the default build.

The maintainers of a compiler decline such reports, or rank them low, so that campaigns do not announce them.
"""

from collections.abc import Mapping
from typing import Any

from miscompile.base.wording import counted


def switches_of(facts: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what shows the bug and is no default of the compiler, in words; empty for a bug of the default build.

    The fact `needs` has the names of the options that the tool itself sets, and the faulty build the optional passes
    that it switches off. Options of the target spec are not among them, because the user has asked for these.
    """
    off = (facts.get("faulty") or {}).get("disabled", ())
    passes = (f"{counted(len(off), 'optional pass')} switched off",) if off else ()
    return (*facts.get("needs", ()), *passes)

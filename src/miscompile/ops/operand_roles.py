"""Structural operands: operands whose elements determine shapes or structure instead of being data, by their role.

Every component that changes values must know them: noise must not change them; many compilers reject a model with a
barrier or an input in their place; a reducer must not set them to zero. An operator's spec names its own. The table
below has the operators of the standard without a spec, because models and tests of others contain them.
"""

from collections.abc import Mapping
from functools import cache

from miscompile.ops.registry import written
from miscompile.ops.spec import Role, Roles

_WITHOUT_SPEC: Mapping[str, Roles] = {
    "If": {"control": (0,)},
    "Loop": {"control": (0, 1)},
    "MaxUnpool": {"shape": (2,), "setting": (1,)},
    "MelWeightMatrix": {"size": (0, 1, 2), "setting": (3, 4)},
    "NonMaxSuppression": {"size": (2,), "setting": (3, 4)},
    "SequenceAt": {"size": (1,)},
    "SequenceErase": {"size": (1,)},
    "SequenceInsert": {"size": (2,)},
    "SplitToSequence": {"shape": (1,)},
    "Upsample": {"shape": (1,)},
}


@cache
def structural_operands(*roles: Role) -> Mapping[str, frozenset[int]]:
    """Return the positions of the operands with one of `roles`, by standard operator; other operators have none."""
    found: dict[str, frozenset[int]] = {}
    for op, told in _all_roles().items():
        places = frozenset(place for role in roles for place in told.get(role, ()))
        if places:
            found[op] = places
    return found


def wanted_constant() -> Mapping[str, frozenset[int]]:
    """Return the operands that many compilers require to be constants: all except those with the role `domain`."""
    return structural_operands("shape", "size", "control", "quantisation", "setting")


@cache
def _all_roles() -> Mapping[str, Roles]:
    return {**_WITHOUT_SPEC, **{op: spec.structural for op, spec in written().items()}}

"""Steps on element types: all tensors that share a type get another one that the operator allows."""

from collections import defaultdict
from collections.abc import Iterator

from miscompile.base.dtypes import DTYPES, PLAIN
from miscompile.harvest.neighbours.call import StepView, Variation
from miscompile.instances.conversion import converted
from miscompile.instances.values import Held

_TYPES = frozenset({*PLAIN, "complex64", "complex128"})
"""Element types that are tried."""


def element_types(scene: StepView) -> Iterator[Variation]:
    """Yield the instance with the tensors of each group converted to every other type that all of them allow."""
    groups: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    found = scene.tensors()
    for name, value in found.items():
        if name in scene.constraints and DTYPES[value.dtype].kind != "string":
            groups[scene.constraints[name].group, value.dtype].append(name)
    for (_, now), names in groups.items():
        allowed = set.intersection(*(set(scene.constraints[name].dtypes) for name in names))
        for dtype in sorted(allowed & _TYPES - {now}):
            values = {name: Held(converted(found[name], dtype)) for name in names}
            yield Variation(values, f"{', '.join(names)} {now} -> {dtype}")

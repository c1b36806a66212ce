"""Element types that compilers compute in narrower ones by design."""

from collections.abc import Iterable

from miscompile.base.dtypes import DTYPES
from miscompile.targets.registry import parse_target


def narrowing(targets: Iterable[str]) -> dict[str, str]:
    """Return which types some of `targets` (specs) compute in a narrower one by design; the narrowest counts."""
    found: dict[str, str] = {}
    for target in targets:
        for wide, narrow in parse_target(target).about.narrowed.items():
            if wide not in found or DTYPES[narrow].storage.itemsize < DTYPES[found[wide]].storage.itemsize:
                found[wide] = narrow
    return found

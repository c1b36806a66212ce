"""Element types in place of which compilers use narrower ones by design."""

from collections.abc import Iterable

from miscompile.base.dtypes import DTYPES
from miscompile.targets.registry import parse_target


def narrowing(targets: Iterable[str]) -> dict[str, str]:
    """Return the types for which any of `targets` (specs) uses a narrower one by design, with the narrowest of
    these."""
    found: dict[str, str] = {}
    for target in targets:
        for wide, narrow in parse_target(target).about.narrowed.items():
            if wide not in found or DTYPES[narrow].storage.itemsize < DTYPES[found[wide]].storage.itemsize:
                found[wide] = narrow
    return found

"""The elements of an output in two builds, as the evidence of a wrong result stores them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Compared:
    """One element of an output in two builds: its index, both texts, the bound of rounding, and whether it is wrong."""

    place: str
    reference: str
    faulty: str
    allowed: str
    wrong: bool


def compared_elements(details: Mapping[str, Any]) -> list[Compared]:
    """Return the elements that a finding's evidence stores; none for a finding that stores none.

    They are the objects under `elements`, as `oracles.elements` writes them; what has another form is left out.
    """
    stored = details.get("elements")
    return [
        Compared(
            f"[{', '.join(map(str, one.get('place', ())))}]",
            str(one.get("reference", "")),
            str(one.get("faulty", "")),
            "" if one.get("allowed") is None else _number(one["allowed"]),
            bool(one.get("wrong")),
        )
        for one in (stored if isinstance(stored, list) else [])
        if isinstance(one, Mapping) and isinstance(one.get("place", []), list)
    ]


def _number(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, int | float) else str(value)

"""What several targets take alike, as one support table."""

from collections.abc import Sequence

from miscompile.ops.support import Support


def joint(parts: Sequence[Support]) -> Support:
    """Return the table of the calls that every target takes; `parts` are the targets' tables, open ones admit all.

    A key is mixed when it is mixed for some target, and then admits the details that each such target is known to take.
    """
    known = [part for part in parts if not part.open]
    if len(known) <= 1:
        return known[0] if known else Support(open=True)
    common = set.intersection(*(part.taken | part.mixed for part in known))
    mixed = {key for key in common if any(key in part.mixed for part in known)}
    offered = {detail for part in known for detail in part.details if _key(detail) in mixed}
    details = {detail for detail in offered if all(detail in p.details for p in known if _key(detail) in p.mixed)}
    return Support(common - mixed, mixed, details, set.union(*(part.barred for part in known)))


def _key(detail: str) -> str:
    return detail.partition("|")[0]

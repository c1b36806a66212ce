"""The figures of patterns in Relax programs as text, by part and row, and as JSON."""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from evaluation.oatest.relax.splicing import RelaxSettings
from evaluation.oatest.relax.study import OPTIMISING, TARGET, RelaxStudy
from evaluation.oatest.splicing import PAPERS_TRIGGER

_AGREED, _WRONG = ("the same bits", "other bits"), "violated: wrong"


def share(part: int, whole: int) -> str:
    """Return a share for people, with its numbers."""
    return f"{100 * part / whole:.1f} % ({part:,} of {whole:,})" if whole else "none"


def syntheses_rows(study: RelaxStudy) -> dict[str, str]:
    """Return what is to be said of the syntheses, by row of the table."""
    told = [one.told for one in study.made]
    facts = {name: sum(one["facts"][name] for one in told) for name in (told[0]["facts"] if told else ())}
    reading = {one.job.pattern: one.told["reading"] for one in study.made}
    return {
        "seeds": f"{dict(study.seeds)}, {statistics.mean(study.sizes or [0]):.1f} bindings on average",
        "drawn; refused; failed": f"{study.drawn:,}; {study.refused.total():,}; {study.failed.total():,}",
        "refused, by why": f"{dict(study.refused)}, {len(study.patterns)} patterns",
        "failed, by what": f"{dict(study.failed)}",
        "different patterns": f"{len(reading):,}",
        "well-formed": share(sum(one["formed"] for one in told), len(told) + study.failed.total()),
        **edge_rows(told),
        "called; in a block of its own": f"{sum(one.job.call for one in study.made):,}; {facts.get('apart', 0):,}",
        "holes: same type, other size, bridge": _sums(facts, "exact", "relaxed", "bridged"),
        "results: rewired, bridge, none": _sums(facts, "rewired", "bridged_out", "loose"),
        "CPU time of a synthesis, mean and median, ms": _ms([one["cpu"] for one in told]),
        "CPU time of reading a pattern, mean and median, ms": _ms(list(reading.values())),
    }


def edge_rows(told: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return what is to be said of the edges between seed and pattern."""
    with_holes = [one for one in told if one["holes"]]

    def count(among: Sequence[Mapping[str, Any]], *edges: str) -> str:
        return share(sum(all(one["edges"][edge] for edge in edges) for one in among), len(among))

    claims = ((one["facts"]["inner_in"], one["facts"]["inner_out"]) for one in told)
    seen = ((one["edges"]["into"], one["edges"]["out"]) for one in told)
    disputed = sum((bool(into), bool(out)) != found for (into, out), found in zip(claims, seen, strict=True))
    return {
        "edge into the pattern, of those with holes": count(with_holes, "into"),
        "edge into the pattern, of all": count(told, "into"),
        "the same from a value that depends on an input, of those with holes": count(with_holes, "fed"),
        "the same of all": count(told, "fed"),
        "edge out of the pattern": count(told, "out"),
        "the same towards a result of the program": count(told, "alive"),
        "both edges": count(told, "into", "out"),
        "both edges, the former from a value that depends on an input": count(told, "fed", "out"),
        "splicing says another thing than the edges": f"{disputed:,}",
    }


def _sums(facts: Mapping[str, int], *wanted: str) -> str:
    return ", ".join(f"{facts.get(name, 0):,}" for name in wanted)


def _ms(seconds: Sequence[float]) -> str:
    return f"{1e3 * statistics.mean(seconds):.1f}, {1e3 * statistics.median(seconds):.1f}" if seconds else "none"


def alone_rows(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return what is to be said of passes that ran alone on a sample; passes of which nothing is known are left out."""
    kept = [row for row in rows if row["told"] and _known(row, "own", 0)]
    left = [row for row in kept if not any(_known(row, "own", 1))]
    strangers = [row for row in kept if _known(row, "others", 0)]
    tried, triggered = Counter[str](), Counter[str]()
    for row in kept:
        for name in row["own"]:
            tried[name] += row["told"][name][0] is not None
            triggered[name] += row["told"][name][0] is True
    shares = [triggered[name] / number for name, number in tried.items() if number]
    by_pattern = sum(bool(set(row["wakes"]) & set(row["own"])) for row in kept)
    return {
        "programs": f"{len(rows):,}",
        "TVM died, or had no end": f"{sum(row['told'] is None for row in rows):,}",
        "no intended pass of which it can be told": f"{sum(row['told'] is not None for row in rows) - len(kept):,}",
        "an intended pass changes the program": share(sum(any(_known(row, "own", 0)) for row in kept), len(kept)),
        "an intended pass changes the seed": share(sum(any(_known(row, "own", 1)) for row in kept), len(kept)),
        "a pass of another's pattern changes it": share(
            sum(any(_known(row, "others", 0)) for row in strangers), len(strangers)
        ),
        "changes the program, where it leaves the seed alone": share(
            sum(any(_known(row, "own", 0)) for row in left), len(left)
        ),
        "mean over the passes": f"{100 * statistics.mean(shares or [0]):.1f} % ({len(shares)} passes)",
        "the pattern outside of any seed triggers it": share(by_pattern, len(kept)),
    }


def _known(row: Mapping[str, Any], whose: str, place: int) -> list[bool]:
    """Return for passes `own` or of `others` whether they change the program (0) or its seed (1), where that is known.

    A pass counts only where it is known of the program.
    """
    told = [row["told"][name] for name in row[whose]]
    return [bool(pair[place]) for pair in told if pair[0] is not None]


def build_rows(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return what is to be said of whole builds of a sample, of seeds that are well built as they are."""
    sound = [row for row in rows if row["plain"]["verdict"].startswith(_AGREED)]
    done = [row for row in sound if row["full"] == "values"]
    seeable = [row for row in done if OPTIMISING.intersection(row["passes"])]
    weighed = [row for row in sound if row["verdict"].startswith((*_AGREED, _WRONG))]

    def seen(found: Sequence[Mapping[str, Any]]) -> str:
        wanted = [OPTIMISING.intersection(row["passes"]) for row in seeable]
        count = sum(not names.isdisjoint(one["seen"]) for names, one in zip(wanted, found, strict=True))
        return share(count, len(seeable))

    return {
        "seeds that both levels build alike": f"{len(sound)} of {len(rows)}",
        "built at off; at full": f"{sum(row['off'] == 'values' for row in sound)}; {len(done)} of {len(sound)}",
        "an intended pass is seen at work": seen(seeable),
        "an intended pass is seen at work in the seed as it is": seen([row["plain"] for row in seeable]),
        "same bits; other bits within the noise; outside": "; ".join(
            f"{sum(row['verdict'].startswith(word) for row in weighed)}" for word in (*_AGREED, _WRONG)
        ),
        "verdicts": f"{dict(Counter(row['verdict'] for row in sound))}",
        "verdicts on the other seeds": f"{dict(Counter(row['verdict'] for row in rows if row not in sound))}",
    }


def table(study: RelaxStudy) -> dict[str, dict[str, str]]:
    """Return all figures as text, by part and row."""
    found = {"syntheses": syntheses_rows(study)}
    found |= {f"passes alone, {name}": alone_rows(rows) for name, rows in study.alone.items()}
    found |= {f"builds, {name}": build_rows(rows) for name, rows in study.builds.items()}
    return found


def text(study: RelaxStudy) -> str:
    """Return the table as lines."""
    lines = []
    for part, rows in table(study).items():
        lines.append(part)
        lines += [f"  {label}: {value}" for label, value in rows.items()]
    lines.append(f"the paper's trigger rate, by coverage of the pass's file: {100 * PAPERS_TRIGGER[TARGET]:.2f} %")
    if study.stopped:
        lines.append("stopped: the figures are of what was measured until then")
    return "\n".join(lines)


def as_json(study: RelaxStudy, settings: RelaxSettings) -> dict[str, Any]:
    """Return everything as a JSON object."""
    made = [
        {**one._asdict(), "job": {**one.job._asdict(), "seed": one.place}, "told": dict(one.told)} for one in study.made
    ]
    plain = {one.name: getattr(study, one.name) for one in fields(study)}
    return {"settings": asdict(settings), "table": table(study), **plain, "made": made}

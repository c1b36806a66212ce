"""The share of a campaign's CPU time that goes into bugs that it knows already.

A violation with the signature of a known bug may be another bug, and only triage can tell. Most turn out to be the
known one. Without a limit such triages take a growing part of a long campaign, because more bugs are known every hour.
"""

from collections.abc import Mapping

SHARE = 0.04
"""Share of the CPU time of tests and triage that may go into known bugs before look-alikes are no longer triaged."""

HEADSTART_US = 5_000_000
"""CPU time, in microseconds, that may go into known bugs beyond that share, so that the first ones are looked at."""


def affordable(counters: Mapping[str, int]) -> bool:
    """Tell whether triage may look at one more violation that has the signature of a known bug.

    `counters` are those of the campaign; `test_us`, `triage_us` and `known_us` are CPU times in microseconds.
    """
    spent = counters.get("test_us", 0) + counters.get("triage_us", 0)
    return counters.get("known_us", 0) <= HEADSTART_US + SHARE * spent

"""The sentences of an issue on the releases in which its script was run."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

_MOST_NAMES = 4
"""Releases without an answer that are named one by one; of more, the first and the last are named."""

_ANSWERS = {"absent": "passes with", "shows": "fails with"}


def tried_releases(releases: Mapping[str, Any]) -> str:
    """Return which releases pass, which fail, and which could not be asked; empty when none was tried.

    `releases` is the fact of that name: `distribution`, `first_bad`, `last_good`, `newest`, and `tried`, the trials in
    the order of the releases.
    """
    tried: Sequence[Mapping[str, Any]] = releases.get("tried", ())
    asked = [one for one in tried if one["answer"] in _ANSWERS]
    if not asked:
        return ""
    runs = [(answer, [str(one["release"]) for one in run]) for answer, run in groupby(asked, lambda one: one["answer"])]
    (answer, names), *later = runs
    told = [f"{_ANSWERS[answer]} {releases['distribution']} {', '.join(names)}"]
    told += [f"{_ANSWERS[answer]} {', '.join(names)}" for answer, names in later]
    end = " (the newest)" if (releases.get("newest") or {}).get("release") == asked[-1]["release"] else ""
    sentences = [
        f"Versions tried: {'; '.join(told)}{end}.",
        _first(releases, tried),
        _without_answer(tried),
        _lowered(asked),
    ]
    return " ".join(filter(None, sentences))


def _first(releases: Mapping[str, Any], tried: Sequence[Mapping[str, Any]]) -> str:
    if releases.get("last_good"):
        return f"First bad release: {releases['first_bad']}."
    oldest = tried[0]["release"] == releases["first_bad"]
    return f"{releases['first_bad']} is the oldest that {'can be installed' if oldest else 'gives an answer'}."


def _without_answer(tried: Sequence[Mapping[str, Any]]) -> str:
    other = [str(one["release"]) for one in tried if one["answer"] == "other"]
    skipped = [str(one["release"]) for one in tried if one["answer"] == "skipped"]
    told = [f"Another error with {_listed(other)}."] if other else []
    told += [f"The script does not run with {_listed(skipped)}."] if skipped else []
    return " ".join(told)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= _MOST_NAMES else f"{names[0]} to {names[-1]}"


def _lowered(asked: Sequence[Mapping[str, Any]]) -> str:
    """Say for which releases the script was changed, so that nobody wonders how they can read it."""
    lowered = [one for one in asked if one.get("opset")]
    if not lowered:
        return ""
    opsets = ", ".join(map(str, sorted({one["opset"] for one in lowered})))
    return f"Releases up to {lowered[-1]['release']} ran the script with opset {opsets}."

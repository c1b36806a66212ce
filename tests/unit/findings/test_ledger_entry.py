"""Entries of a ledger: the states, and the union of two accounts of one bug."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miscompile.base.errors import UsageError
from miscompile.core.finding import Signature
from miscompile.findings.ledger_entry import STATES, LedgerEntry, checked, key_of, reaches, united

SIGNATURE = Signature("onnxruntime", "wrong", "", ("Fuse",), "")
NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"

RELEASES = st.sampled_from(["", "1.20", "1.20.0", "1.20.1", "1.21.0.dev3", "1.9", "2.0+cpu"])
TIMES = st.sampled_from([NOW, LATER, "2027-03-04T05:06:07Z"])
TEXTS = st.text(max_size=6)
JSON = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@st.composite
def entries(draw: st.DrawFn, signature: st.SearchStrategy[Signature] | None = None) -> LedgerEntry:
    """Valid entries, of one signature unless others are given."""
    state = draw(st.sampled_from(STATES))
    first, last = sorted([draw(RELEASES), draw(RELEASES)])
    return LedgerEntry(
        SIGNATURE if signature is None else draw(signature),
        state,
        draw(TEXTS),
        draw(TEXTS),
        fixed_in="1.22" if state == "fixed-in" else draw(RELEASES),
        regressed_in=draw(RELEASES),
        duplicate_of=draw(st.sampled_from(["a", "b"])) if state == "duplicate-of" else "",
        first_release=first,
        last_release=last,
        found=draw(TIMES),
        changed=draw(TIMES),
        seen=draw(st.integers(0, 10**6)),
        campaign=draw(TEXTS),
        finding=draw(TEXTS),
        message=draw(TEXTS),
        predicate=draw(st.none() | st.dictionaries(TEXTS, JSON, max_size=3)),
    )


@given(entries())
def test_every_entry_here_is_valid(entry: LedgerEntry) -> None:
    assert checked(entry) is entry


@given(entries(), entries(), entries())
def test_the_union_of_accounts_does_not_depend_on_their_order(a: LedgerEntry, b: LedgerEntry, c: LedgerEntry) -> None:
    assert united(a, b) == united(b, a)
    assert united(united(a, b), c) == united(a, united(b, c))
    assert united(united(a, b), b) == united(a, b)


def test_the_later_decision_counts_and_the_earlier_discovery() -> None:
    mine = LedgerEntry(
        SIGNATURE, "reported", "https://a", found=LATER, changed=NOW, finding="wrong-2", last_release="1.9"
    )
    yours = LedgerEntry(SIGNATURE, "wontfix", found=NOW, changed=LATER, finding="wrong-1", first_release="1.20", seen=7)
    both = united(mine, yours)
    assert (both.state, both.link, both.finding, both.seen) == ("wontfix", "", "wrong-1", 7)
    assert (both.first_release, both.last_release) == ("1.9", "1.20")
    with pytest.raises(UsageError, match="different bugs"):
        united(mine, replace(yours, signature=replace(SIGNATURE, kind="shape")))


def test_a_fixed_bug_absorbs_look_alikes_in_older_releases_alone() -> None:
    bug = LedgerEntry(SIGNATURE, found=NOW, changed=NOW)
    fixed = bug.closed("fixed-in", "", LATER, "1.10")
    assert [fixed.absorbs(one) for one in ("1.9", "1.10.0.dev1", "1.10", "1.10+cpu", "1.11")] == [
        True, True, False, False, False
    ]  # fmt: skip
    assert fixed.absorbs("")  # a release that nobody knows proves no regression
    for other in (
        bug,
        bug.linked("https://a", "", NOW),
        bug.closed("wontfix", "", NOW),
        bug.closed("invalid", "", NOW),
    ):
        assert other.absorbs("99")


def test_transitions() -> None:
    bug = LedgerEntry(SIGNATURE, found=NOW, changed=NOW, finding="wrong-1")
    reported = bug.linked("https://a", "a note", LATER)
    assert (reported.state, reported.link, reported.note, reported.changed) == (
        "reported",
        "https://a",
        "a note",
        LATER,
    )
    fixed = reported.closed("fixed-in", "", LATER, "1.10")
    assert fixed.linked("https://b", "", LATER).state == "fixed-in"
    back = fixed.regressed("1.11", "c", "wrong-2", LATER)
    assert (back.state, back.fixed_in, back.regressed_in, back.finding) == ("open", "1.10", "1.11", "wrong-2")
    assert back.closed("fixed-in", "", LATER, "1.12").regressed_in == ""
    twin = reported.duplicating("other", LATER)
    assert (twin.state, twin.duplicate_of) == ("duplicate-of", "other")
    assert (twin.reopened(LATER).state, twin.reopened(LATER).duplicate_of) == ("reported", "")
    assert bug.closed("wontfix", "", LATER).reopened(LATER).state == "open"


@given(st.lists(st.sampled_from(["1.9", "1.10", "1.10.1", "2.0", "nightly"]), min_size=1))
def test_sightings_widen_the_range_of_releases(seen: list[str]) -> None:
    bug = LedgerEntry(SIGNATURE, found=NOW, changed=NOW, seen=0)
    for release in seen:
        bug = bug.sighted(release)
    versions = ["1.9", "1.10", "1.10.1", "2.0"]
    met = [one for one in versions if one in seen] or [""]
    assert (bug.first_release, bug.last_release, bug.seen) == (met[0], met[-1], len(seen))


def test_signatures_of_all_releases_are_one_bug() -> None:
    assert key_of(replace(SIGNATURE, target="onnxruntime==1.20.1")) == key_of(SIGNATURE) == "onnxruntime:wrong:Fuse"
    assert key_of(replace(SIGNATURE, target="tvm==0.27{via=torch}")) == "tvm{via=torch}:wrong:Fuse"
    assert key_of(replace(SIGNATURE, culprits=(), text="\udcff")).isascii()
    assert not reaches("nightly", "1.0")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"state": "closed"}, "no state 'closed'"),
        ({"state": "fixed-in"}, "needs fixed_in"),
        ({"state": "duplicate-of"}, "needs duplicate_of"),
        ({"first_release": "old"}, "'old' is no version"),
        ({"changed": "yesterday"}, "is no time"),
    ],
)
def test_invalid_entries_are_told(change: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        checked(replace(LedgerEntry(SIGNATURE, found=NOW, changed=NOW), **change))  # type: ignore[arg-type]

from hypothesis import given
from hypothesis import strategies as st

from miscompile.ops.support import Support, joint

KEYS = st.sets(st.sampled_from(["a", "b", "c", "d"]))
DETAILS = st.sets(st.builds("{}|{}".format, st.sampled_from("abcd"), st.sampled_from("12")))
PARTS = st.builds(
    lambda taken, mixed, details, barred: Support(taken - mixed, mixed, details, barred),
    KEYS, KEYS, DETAILS, st.sets(st.sampled_from(["f|x", "g|y"])),
)  # fmt: skip


def admits(part: Support, detail: str) -> bool:
    key = detail[0]
    return key in part.taken or (key in part.mixed and detail in part.details)


@given(st.lists(PARTS, min_size=1, max_size=3), st.booleans())
def test_a_call_is_admitted_exactly_when_every_part_admits_it(parts: list[Support], extra: bool) -> None:
    table = joint([*parts, *([Support(open=True)] if extra else [])])
    assert not table.open
    for key in "abcd":
        for number in "12":
            detail = f"{key}|{number}"
            offered = any(detail in part.details for part in parts) or all(key in part.taken for part in parts)
            if offered:
                assert admits(table, detail) == all(admits(part, detail) for part in parts)
    assert all(part.barred <= table.barred for part in parts)


def test_open_tables_alone_admit_everything() -> None:
    assert joint([Support(open=True), Support(open=True)]).open

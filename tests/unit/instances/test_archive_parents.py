"""Parents in archives: each is stored once, archives without parents are read, and content does not depend on them."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from miscompile.base.errors import UsageError
from miscompile.core.tensor import tensor
from miscompile.instances.archive import Archive, read_archive, write_archive
from miscompile.instances.code import decoded, digest_of, encoded, with_parent
from miscompile.instances.instance import Instance, Parent
from miscompile.instances.values import Held

TEST = Instance(
    "onnx", "Relu", "node", inputs=(Held(tensor(np.random.default_rng(0).normal(size=4096).astype(np.float32))),),
    version=14, source="tests", origin="test_relu",
)  # fmt: skip
PARENT = Parent(TEST, {"input 0": "X"})
NEAR = tuple(
    replace(
        TEST, inputs=(Held(tensor(np.full(3, place, np.float32))),), source="neighbours", origin="; from test_relu",
        parent=PARENT,
    )
    for place in range(10)
)  # fmt: skip


def test_a_parent_is_stored_once_and_comes_back(tmp_path: Path) -> None:
    place = tmp_path / "near.jsonl.gz"
    write_archive(Archive("onnx", NEAR), place)
    assert read_archive(place).instances == NEAR
    write_archive(Archive("onnx", (TEST,)), tmp_path / "test.jsonl.gz")
    assert place.stat().st_size < 2 * (tmp_path / "test.jsonl.gz").stat().st_size


def test_a_parent_is_no_part_of_the_content() -> None:
    alone = replace(NEAR[0], parent=None)
    assert digest_of(alone) == digest_of(NEAR[0])
    assert encoded(alone) == encoded(NEAR[0])
    assert decoded(with_parent(NEAR[0])) == NEAR[0]
    assert decoded(encoded(NEAR[0])) == alone


def _lines(place: Path, *lines: bytes) -> None:
    with gzip.open(place, "wb") as file:
        file.write(b"\n".join(lines) + b"\n")


def test_archives_without_parents_and_with_one_that_is_missing_are_read(tmp_path: Path) -> None:
    place = tmp_path / "old.jsonl.gz"
    head = json.dumps({"schema": 1, "library": "onnx", "versions": {}, "figures": {}}).encode()
    lost = json.dumps({**json.loads(encoded(NEAR[1])), "parent": "nowhere"}).encode()
    _lines(place, head, encoded(NEAR[0]), lost)
    assert [one.parent for one in read_archive(place).instances] == [None, None]


def test_a_damaged_parent_is_told(tmp_path: Path) -> None:
    place = tmp_path / "bad.jsonl.gz"
    head = {"schema": 1, "library": "onnx", "versions": {}, "figures": {}, "parents": {"x": {"instance": {}}}}
    _lines(place, json.dumps(head).encode(), encoded(NEAR[0]))
    with pytest.raises(UsageError, match="no archive of instances"):
        read_archive(place)

"""What tests of whole campaigns share: a cache of support tables, and campaigns that never outlive their test."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from campaigns import Campaign, Start, fuzz


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache of support tables that all tests share, those of other test processes included."""
    return tmp_path_factory.getbasetemp().parent / "miscompile-cache"


@pytest.fixture
def start(cache: Path) -> Iterator[Start]:
    """Start campaigns as `fuzz` does; those that still run at the end of the test are killed."""
    begun: list[Campaign] = []

    def begin(out: Path, *words: str, **options: Any) -> Campaign:
        begun.append(fuzz(out, cache, *words, **options))
        return begun[-1]

    yield begin
    for campaign in begun:
        if campaign.process.poll() is None:
            campaign.process.kill()
        campaign.process.communicate()

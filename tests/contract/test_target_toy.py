"""The toy compiler keeps the contract of targets, in real worker processes."""

import pytest

from miscompile.execution.conformance import check_target
from miscompile.execution.pool import LocalPool

pytestmark = pytest.mark.process


def test_the_toy_keeps_the_contract_of_targets() -> None:
    check_target("toy", LocalPool)


def test_the_kit_notices_a_toy_with_faults() -> None:
    with pytest.raises(AssertionError, match="output 0 has other elements"):
        check_target("toy{bugs=transpose_pair_not_inverse+sub_commutes}", LocalPool)

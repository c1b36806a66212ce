import pytest

from miscompile.execution.conformance import check_target
from miscompile.execution.pool import LocalPool

pytestmark = [pytest.mark.compiler, pytest.mark.process]


def test_the_reference_implementation_keeps_the_contract() -> None:
    check_target("reference", LocalPool)

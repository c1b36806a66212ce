"""The target keeps the contract that miscompile holds every compiler against."""

from miscompile.execution.conformance import check_target
from miscompile.execution.pool import LocalPool


def test_acme_keeps_the_contract_of_targets() -> None:
    check_target("acme", LocalPool)

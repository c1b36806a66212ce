"""Reasons for which a target refuses programs."""

from functools import lru_cache

from miscompile.base.messages import normalise
from miscompile.core.outcome import Outcome, Rejected, Unsupported
from miscompile.targets.known import known
from miscompile.targets.registry import parse_target

_LENGTH = 120


@lru_cache(1 << 12)
def reason_of(target: str, kind: str, message: str) -> str:
    """Return the reason in `known.toml`, else the message without what varies from program to program."""
    spec = parse_target(target)
    entry = known(spec.about.name, spec.via).rejection(kind, message)
    return (normalise(message) if entry is None else entry.reason)[:_LENGTH].replace("|", " ")


@lru_cache(64)
def _lawful_reasons(target: str) -> frozenset[str]:
    """Return the reasons that are lawful in every form of a call, as they are counted."""
    spec = parse_target(target)
    entries = known(spec.about.name, spec.via).rejections
    return frozenset(one.reason[:_LENGTH].replace("|", " ") for one in entries if one.lawful)


def is_lawful(target: str, reason: str) -> bool:
    """Tell whether a reason, as `reason_of` returns it, is lawful in every form of a call."""
    return reason in _lawful_reasons(target)


def refusal_reason(target: str, outcome: Outcome) -> str:
    """Return the reason for which `target` refuses a program; empty for any other outcome."""
    if not isinstance(outcome, Unsupported | Rejected):
        return ""
    return reason_of(target, outcome.kind if isinstance(outcome, Unsupported) else "", outcome.message)

"""SARIF 2.1.0 of a run in CI, for code scanning (https://docs.oasis-open.org/sarif/sarif/v2.1.0/)."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from miscompile import __version__
from miscompile.reports.ci_result import CiFinding, CiResult

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_HOME = "https://github.com/miscompile/miscompile"

_RULES: Mapping[str, str] = {
    "wrong": "A build of the compiler returns a wrong result.",
    "special": "A build of the compiler returns a wrong result for NaN, an infinity, a zero or an end of a type.",
    "cost": "An optimised build of the compiler, or its program, takes time or memory out of proportion.",
    "refused-form": "The compiler refuses a form of an operator, and takes another one.",
    "exception": "A build of the compiler raises an exception for a valid model.",
    "death": "A build of the compiler, or its program, kills the process.",
    "hang": "A build of the compiler, or its program, does not end.",
}


def sarif_log(result: CiResult) -> dict[str, Any]:
    """Return the log as JSON values.

    The identifier of the run ends with `/`, because code scanning takes what precedes the last one as the category,
    within which one upload replaces another. The location of a finding is its script, because the fault is in no file
    of the repository. Known findings are `unchanged` and suppressed, so that code scanning opens no alerts for them.
    """
    kinds = sorted({*_RULES, *(one.kind for one in result.findings)})
    texts = {kind: _RULES.get(kind, f"A finding of the kind {kind}.") for kind in kinds}
    rules = [{"id": kind, "shortDescription": {"text": text}} for kind, text in texts.items()]
    driver = {"name": "miscompile", "version": __version__, "informationUri": _HOME, "rules": rules}
    invocation: dict[str, Any] = {"executionSuccessful": not result.untested or bool(result.new)}
    if not invocation["executionSuccessful"]:
        text = f"nothing was tested: {result.untested}"
        invocation["toolExecutionNotifications"] = [{"level": "error", "message": {"text": text}}]
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"miscompile/{result.target}/{result.shard.replace('/', '-of-')}/"},
        "invocations": [invocation],
        "results": [_result(one, kinds.index(one.kind)) for one in result.findings],
        "properties": {"seed": result.seed, "tests": result.tests, "judged": result.judged, **dict(result.versions)},
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(finding: CiFinding, rule: int) -> dict[str, Any]:
    file = {"uri": quote(f"{finding.folder}/repro.py", safe="/:")}
    location = {"physicalLocation": {"artifactLocation": file, "region": {"startLine": 1}}}
    found: dict[str, Any] = {
        "ruleId": finding.kind,
        "ruleIndex": rule,
        "level": "error" if finding.new else "note",
        "message": {"text": f"{finding.title}\n\n{finding.message or finding.signature}"},
        "locations": [location],
        "partialFingerprints": {"signature/v1": finding.fingerprint},
        "properties": {"signature": finding.signature, "finding": finding.identifier, "nodes": finding.nodes},
    }
    found["baselineState"] = "new" if finding.new else "unchanged"
    if not finding.new:
        found["suppressions"] = [{"kind": "external", "justification": finding.link or "in the baseline"}]
    return found

"""JUnit XML of a run in CI, in the form that CI servers read: suites, cases, failures, errors, skips."""

import re
from xml.etree import ElementTree as Xml

from miscompile.reports.ci_result import CiFinding, CiResult

_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow (section 2.2), which messages of compilers may hold."""


def junit_text(result: CiResult) -> str:
    """Return the XML document.

    A case stands for the tests as a whole, so that a run without findings is no empty suite; it is an error when
    nothing was tested. Each finding is a case: a failure when it is new, skipped when it is known.
    """
    untested = bool(result.untested) and not result.new
    counts = {
        "tests": len(result.findings) + 1,
        "failures": len(result.new),
        "errors": int(untested),
    }
    shared = {name: str(value) for name, value in counts.items()} | {"time": f"{result.seconds:.3f}"}
    skipped = {"skipped": str(len(result.findings) - len(result.new))}  # Jenkins' schema has it for one suite only
    suites = Xml.Element("testsuites", {"name": "miscompile", **shared})
    suite = Xml.SubElement(suites, "testsuite", {"name": _plain(f"miscompile.{result.target}"), **shared, **skipped})
    properties = Xml.SubElement(suite, "properties")
    facts = {"seed": result.seed, "shard": result.shard, "tests": result.tests, "judged": result.judged}
    for name, value in {**facts, **dict(result.versions)}.items():
        Xml.SubElement(properties, "property", {"name": _plain(name), "value": _plain(str(value))})
    whole = _case(suite, result, "campaign", result.seconds)
    if untested:
        Xml.SubElement(whole, "error", {"type": "nothing tested", "message": _plain(result.untested)})
    for finding in result.findings:
        _add(suite, result, finding)
    Xml.indent(suites)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{Xml.tostring(suites, "unicode")}\n'


def _case(suite: Xml.Element, result: CiResult, name: str, seconds: float = 0.0) -> Xml.Element:
    where = {"classname": _plain(f"miscompile.{result.target}"), "name": _plain(name), "time": f"{seconds:.3f}"}
    return Xml.SubElement(suite, "testcase", where)


def _add(suite: Xml.Element, result: CiResult, finding: CiFinding) -> None:
    case = _case(suite, result, finding.signature)
    if finding.new:
        failure = Xml.SubElement(case, "failure", {"type": _plain(finding.kind), "message": _plain(finding.title)})
        failure.text = _plain(f"{finding.folder}\n\n{finding.issue or finding.message}")
    else:
        Xml.SubElement(case, "skipped", {"message": _plain(f"known: {finding.link or finding.signature}")})


def _plain(text: str) -> str:
    """Return a text that XML allows."""
    return _FORBIDDEN.sub("�", text)

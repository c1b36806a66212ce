"""Steering: every pass stays on in a share of the tests, known bugs are avoided and recognised."""

import random
from collections import Counter
from dataclasses import replace

import pytest

from miscompile.core.case import Case
from miscompile.core.finding import Finding, Property, Signature
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Evidence
from miscompile.engine.steering import ALIKE, DOUBTED, HANGING, LEAST_ASKED, LEAST_TESTS, OPEN, SEARCH_COST, Steering
from miscompile.findings.folder import FindingStatus, Stored
from miscompile.graph.emit import to_program
from miscompile.graph.text.parser import parse_model
from miscompile.targets.toy.about import ABOUT
from miscompile.triage.predicate import BugPredicate, NodePattern, ValuePattern
from miscompile.triage.recognition import (
    MOST_VARIANTS,
    SignedPredicate,
    signed_predicate_from,
    signed_predicates_of,
    with_pattern,
    with_variant,
)

BUG = SignedPredicate(
    BugPredicate("toy", "wrong", "", "", ("OperandOrdering",), "", (NodePattern("Sub", ("x", "y"), ("a",)),), {}),
    Signature("toy", "wrong", "", ("OperandOrdering",), ""),
)


def case(operator: str = "Sub") -> Case:
    text = f"""ir 10
opset 18

graph g(%x: float32[2], %y: float32[2]) -> (%a: float32[2]) {{
  %a = {operator}(%x, %y)
}}
"""
    return Case(to_program(parse_model(text)), ())


def steering(*known: SignedPredicate, enabled: bool = True) -> Steering:
    return Steering({"toy": ABOUT}, enabled=enabled, known=list(known))


def courses(steered: Steering, program: Case, count: int = 2000) -> Counter[frozenset[str]]:
    """The sets of passes that are off in `count` tests of one program."""
    found = Counter[frozenset[str]]()
    for number in range(count):
        course = steered.course(program, random.Random(number))
        assert not course.given_up
        steered.count(course.disabled)
        found[course.disabled.get("toy", frozenset())] += 1
    return found


def test_nothing_is_off_without_known_bugs() -> None:
    assert courses(steering(), case()) == {frozenset(): 2000}


def test_the_pass_of_a_bug_is_off_where_the_program_has_it_and_on_in_a_share_of_these_tests() -> None:
    found = courses(steering(BUG), case())
    assert found.keys() == {frozenset(), frozenset({"OperandOrdering"})}
    assert found[frozenset()] / 2000 == pytest.approx(OPEN, abs=0.04)
    assert courses(steering(BUG), case("Add")) == {frozenset(): 2000}


def test_a_known_hang_is_avoided_in_open_tests_as_well() -> None:
    hang = replace(BUG, predicate=replace(BUG.predicate, kind="hang"))
    found = courses(steering(hang), case(), 8000)
    assert found[frozenset()] / 8000 == pytest.approx(HANGING, abs=0.01)
    assert courses(steering(hang), case("Add")) == {frozenset(): 2000}
    steered = steering(replace(hang, predicate=replace(hang.predicate, passes=())))
    given_up = sum(steered.course(case(), random.Random(number)).given_up for number in range(8000))
    assert given_up / 8000 == pytest.approx(1 - HANGING, abs=0.01)


def test_a_costly_pass_is_off_everywhere_in_a_share_that_falls_as_tests_pass_without_cost() -> None:
    steered = steering()
    for _ in range(8):
        steered.charge("toy", ("ConstantFolding", "ReshapeMerging"), SEARCH_COST)
    off = frozenset({"ReshapeMerging", "ShapeCleanup"})  # the last culprit with its twin
    early = courses(steered, case("Add"), 400)
    assert set().union(*early) == off
    on = sum(count for names, count in early.items() if not names)
    assert 0.2 < on / 400 < 0.5
    late = courses(steered, case("Add"), 40_000)
    assert sum(count for names, count in late.items() if not names) / 40_000 > 0.5


def test_a_pass_whose_bugs_cost_little_is_never_off() -> None:
    steered = steering()
    steered.charge("toy", ("DeadCode",), LEAST_TESTS * 0.04)
    assert courses(steered, case("Add")) == {frozenset(): 2000}


def test_drafts_with_a_bug_of_no_pass_are_given_up_most_of_the_time() -> None:
    plain = replace(BUG, predicate=replace(BUG.predicate, passes=()))
    steered = steering(plain)
    given_up = sum(steered.course(case(), random.Random(number)).given_up for number in range(2000))
    assert given_up / 2000 == pytest.approx(7 / 8, abs=0.03)
    assert not any(steered.course(case("Add"), random.Random(number)).given_up for number in range(100))


def test_a_bug_under_a_transform_is_no_reason_to_avoid_the_program_itself() -> None:
    shown = replace(BUG, predicate=replace(BUG.predicate, transform="again"))
    assert courses(steering(shown), case()) == {frozenset(): 2000}


def test_switched_off_nothing_is_steered_but_bugs_are_recognised() -> None:
    steered = steering(BUG, enabled=False)
    steered.charge("toy", ("DeadCode",), 1e9)
    assert courses(steered, case()) == {frozenset(): 2000}
    program = case()
    found = Evidence("wrong", "exact", "m", Run(program, "toy", Build("full")), Run(program, "toy", Build("off")), "a")
    assert steered.recognise(program, found, None) == BUG
    assert steered.recognise(case("Add"), found, None) is None
    assert steered.may_be_another(case("Add"), BUG.signature, random.Random(1))


def test_a_searched_duplicate_widens_the_predicate_of_its_bug_alone() -> None:
    nodes = (NodePattern("Sub", ("x", "y"), ("a",)), NodePattern("Relu", ("a",), ("b",)))
    narrow = replace(BUG, predicate=replace(BUG.predicate, nodes=nodes, values={"x": ValuePattern(rank=3)}))
    other = replace(narrow, signature=replace(BUG.signature, culprits=("DeadCode",)))
    text = """ir 10
opset 18

graph g(%x: float32[2], %y: float32[2]) -> (%b: float32[2]) {
  %a = Sub(%x, %y)
  %b = Relu(%a)
}
"""
    program = Case(to_program(parse_model(text)), ())
    found = Evidence("wrong", "exact", "m", Run(program, "toy", Build("full")), Run(program, "toy", Build("off")), "b")
    steered = steering(other, narrow)
    steered.widen(case("Add"), found, None, BUG.signature)  # the nodes are not in this program
    assert steered.known == [other, narrow]
    assert steered.recognise(program, found, None) is None
    steered.widen(program, found, None, BUG.signature)
    assert steered.known[0] == other
    assert steered.recognise(program, found, None) == steered.known[1]
    asked = sum(steered.doubts(steered.known[1], random.Random(number)) for number in range(2000))
    assert asked / 2000 == pytest.approx(DOUBTED, abs=0.02)
    assert not any(steered.doubts(other, random.Random(number)) for number in range(100))
    crash = replace(found, kind="exception")
    assert steered.recognise(program, crash, None) is None


def test_knowledge_is_sent_as_json_and_learned_once() -> None:
    steered = steering()
    steered.learn([signed_predicate_from(BUG.as_json()), BUG])
    assert steered.known == [BUG]


def test_triage_is_asked_less_and_less_whether_a_violation_is_another_bug() -> None:
    def asked(*known: SignedPredicate, operator: str = "Add") -> float:
        held, program = steering(*known), case(operator)
        asked = (held.may_be_another(program, BUG.signature, random.Random(number)) for number in range(2000))
        return sum(asked) / 2000

    variants = [replace(BUG, predicate=replace(BUG.predicate, message=str(number))) for number in range(10)]
    assert asked() == 0
    assert asked(BUG) == 1
    assert asked(BUG, *variants[:1]) == pytest.approx(0.5, abs=0.04)
    assert asked(BUG, *variants[:2]) == pytest.approx(0.25, abs=0.04)
    assert asked(BUG, *variants) == pytest.approx(LEAST_ASKED, abs=0.02)
    assert asked(BUG, operator="Sub") == pytest.approx(ALIKE, abs=0.03)
    message = replace(BUG, signature=replace(BUG.signature, culprits=(), text="as functions: refused"))
    assert not steering(message).may_be_another(case("Add"), message.signature, random.Random(1))


def triaged(predicate: BugPredicate, status: FindingStatus = "confirmed") -> Stored:
    held = Property("optimisation", "toy", BUG.signature)
    finding = Finding("wrong-1", held, case(), "differs", {"predicate": predicate.as_json()})
    return Stored(finding, status, None, {})


def test_a_finding_takes_over_the_predicates_of_findings_that_are_merged_into_it() -> None:
    other = replace(BUG.predicate, nodes=(NodePattern("Mul", ("x", "y"), ("a",)),))
    owner = triaged(BUG.predicate)
    assert signed_predicates_of(owner) == (BUG,)
    assert with_variant(owner, triaged(BUG.predicate)) == owner
    assert with_variant(owner, triaged(other, "unconfirmed")) == owner
    wider = with_variant(owner, triaged(other))
    assert signed_predicates_of(wider) == (BUG, replace(BUG, predicate=other))
    assert with_variant(wider, triaged(other)) == wider
    for number in range(2 * MOST_VARIANTS):
        wider = with_variant(wider, triaged(replace(other, message=str(number))))
    assert len(signed_predicates_of(wider)) == 1 + MOST_VARIANTS


def test_a_finding_that_known_toml_knows_by_a_pattern_is_recognised_in_every_program_with_it() -> None:
    facts = {"predicate": BUG.predicate.as_json()}
    pattern = {"nodes": [{"op": "Mul", "inputs": ["x", "y"], "outputs": ["a"]}]}
    known = triaged(BUG.predicate, "known")
    known = replace(known, finding=replace(known.finding, facts={**facts, **with_pattern(facts, pattern)}))
    own, wider = signed_predicates_of(known)
    assert own == BUG
    assert (wider.predicate.passes, wider.predicate.symptom) == (BUG.predicate.passes, BUG.predicate.symptom)
    assert [node.op for node in wider.predicate.nodes] == ["Mul"]
    assert with_pattern({}, pattern) == {}, "without a predicate nothing says in which builds it shows"


def test_only_triaged_findings_are_steered_past() -> None:
    assert signed_predicates_of(triaged(BUG.predicate, "pending")) == ()
    assert signed_predicates_of(triaged(BUG.predicate, "known")) == (BUG,)

"""Disruptive generation: programs are invalid and say why, breaks go where they have not been, valid calls pass."""

import io
import json
import random
import struct
from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miscompile.base.dtypes import DTYPES
from miscompile.base.errors import RejectedDraft, SpecError, UsageError
from miscompile.base.rng import stream
from miscompile.base.specs import parse_options, parse_spec, print_spec
from miscompile.core.case import Case
from miscompile.core.tensor import tensor
from miscompile.graph.attributes import attributes
from miscompile.graph.model import TensorType
from miscompile.graph.read import read
from miscompile.ops.registry import schema
from miscompile.ops.spec import OperatorLimits
from miscompile.ops.support import Support
from miscompile.ops.values import Style
from miscompile.producers.disruptive.attributes import break_attribute, break_declared, break_signature
from miscompile.producers.disruptive.checker import refusal_of, serve
from miscompile.producers.disruptive.draft import DraftOperand, DraftRole, InvalidDraft, Presentation, take_apart
from miscompile.producers.disruptive.operands import (
    break_contents,
    break_domain,
    break_dtype,
    break_mixed,
    break_rank,
    break_shape,
)
from miscompile.producers.disruptive.producer import (
    ACCEPTANCE,
    KINDS,
    BrokenCoverage,
    DisruptiveOptions,
    DisruptiveProducer,
)
from miscompile.producers.disruptive.proof import Prover, keeps_page
from miscompile.producers.sweep import draft_single

OPEN = Support(open=True)
OPS = ("Add", "MatMul", "Conv", "Transpose", "Gather", "Reshape", "Softmax", "Where", "Concat", "Div")
PROVER = Prover(refusal_of)


def producer(
    ops: tuple[str, ...] = OPS, kinds: tuple[str, ...] = (), acceptance: tuple[str, ...] = ACCEPTANCE
) -> DisruptiveProducer:
    options = DisruptiveOptions(ops=ops, kinds=kinds, acceptance=acceptance)
    return DisruptiveProducer(options, OPEN, check=refusal_of)


@cache
def some_cases() -> tuple[Case, ...]:
    made = producer()
    return tuple(made.propose(stream(7, index)) for index in range(100))


def addition() -> InvalidDraft:
    part = DraftOperand(tensor(np.ones((2, 3), np.float32)), "fed", known=False)
    return InvalidDraft("Add", 21, (part, part), {}, (TensorType("float32", (None, None)),))


def transposition() -> InvalidDraft:
    part = DraftOperand(tensor(np.ones((2, 3), np.float32)), "fed", known=False)
    return InvalidDraft("Transpose", 21, (part,), attributes({"perm": (1, 0)}), (TensorType("float32", (None, None)),))


def reshaping(role: DraftRole = "constant") -> InvalidDraft:
    data = DraftOperand(tensor(np.ones((2, 3), np.float32)), "fed", known=False)
    shape = DraftOperand(tensor(np.array([3, 2])), role, known=True)
    return InvalidDraft("Reshape", 21, (data, shape), {}, (TensorType("float32", (None, None)),))


def test_the_checker_refuses_what_it_is_said_to_refuse() -> None:
    for case in some_cases():
        said = refusal_of(case.program.payload)
        assert bool(said) >= (case.recipe["proof"] == "checker"), case.recipe


def test_every_case_says_what_is_broken_and_which_oracle_judges_it() -> None:
    for case in some_cases():
        recipe = json.loads(json.dumps(case.recipe))
        assert recipe["oracle"] == "disruptive"
        assert recipe["broken"]["kind"] in KINDS
        assert recipe["broken"]["detail"]
        part = recipe["broken"]["place"].split()[0]
        assert part in {"operand", "attribute", "result", "operands", "results", "call"}
        assert recipe["broken"]["refusal"]
        assert len(read(case.program.payload).graph.nodes) == 1


def test_all_kinds_of_constraints_are_broken() -> None:
    assert {case.recipe["broken"]["kind"] for case in some_cases()} == set(KINDS)


def test_feeds_fit_the_declared_inputs() -> None:
    for case in some_cases():
        for port, value in zip(case.program.inputs, case.feeds[0], strict=True):
            assert value.dtype == port.dtype
            assert value.array.dtype == DTYPES[port.dtype].storage
            if port.shape is not None:
                assert len(port.shape) == len(value.shape)
                assert all(want in (None, have) for want, have in zip(port.shape, value.shape, strict=True))


def test_only_what_the_checker_sees_counts_when_it_is_accepted() -> None:
    for case in some_cases():
        recipe = case.recipe
        kind = recipe["broken"]["kind"]
        promoted = kind == "mixed" and recipe["op"] in ("Add", "Where", "Div")
        wanted = recipe["proof"] == "checker" and kind in ACCEPTANCE and not promoted
        assert recipe["counts"] == ("acceptance" if wanted else "deaths")


def test_the_kinds_whose_acceptance_counts_can_be_chosen() -> None:
    made = producer(acceptance=())
    assert {made.propose(stream(1, index)).recipe["counts"] for index in range(20)} == {"deaths"}


def test_of_a_target_with_lowerings_only_compiled_code_counts() -> None:
    made = DisruptiveProducer(DisruptiveOptions(ops=OPS), OPEN, lowered=True, check=refusal_of)
    assert {made.propose(stream(1, index)).recipe["counts"] for index in range(20)} == {"compiled"}


def test_equal_streams_give_equal_cases() -> None:
    one, other = producer(), producer()
    for index in range(15):
        first, second = one.propose(stream(3, index)), other.propose(stream(3, index))
        assert first.program == second.program
        assert first.recipe == second.recipe
        assert all(a.same(b) for a, b in zip(first.feeds[0], second.feeds[0], strict=True))


def test_breaks_are_mostly_new() -> None:
    made = producer()
    for index in range(60):
        made.propose(stream(5, index))
    assert len(made.coverage.seen) > 50


def test_turns_are_shared_out() -> None:
    made = producer(kinds=("dtype", "signature"))
    pairs = Counter[tuple[str, str]]()
    for index in range(80):
        case = made.propose(stream(5, index))
        pairs[case.recipe["op"], case.recipe["broken"]["kind"]] += 1
    assert len(pairs) == 2 * len(OPS)
    assert max(pairs.values()) < 20


def test_a_coverage_prefers_what_had_few_turns() -> None:
    coverage = BrokenCoverage()
    coverage.add("Add", "dtype", "A:bool")
    assert not coverage.is_new("Add", "dtype", "A:bool")
    assert coverage.is_new("Add", "dtype", "A:string")
    before = coverage.turns["Add", "dtype"]
    coverage.add("Add", "dtype", "A:bool")
    assert coverage.turns["Add", "dtype"] - before > before  # the same again is worth less than something new
    rng = random.Random(0)
    chosen = Counter(coverage.choose(rng, [("Add", "dtype"), ("Mul", "dtype")]) for _ in range(200))
    assert chosen["Mul", "dtype"] > 150


@pytest.mark.parametrize(
    "options",
    [
        DisruptiveOptions(),
        DisruptiveOptions(ops=("Add",), kinds=("dtype", "mixed"), opsets=(17,), max_rank=2, max_dim=3, share=0.5),
        DisruptiveOptions(acceptance=()),
    ],
)
def test_options_print_and_parse(options: DisruptiveOptions) -> None:
    spec = parse_spec(print_spec("disruptive", options))
    assert spec.name == "disruptive"
    assert parse_options(DisruptiveOptions, dict(spec.options), spec.name) == options


def test_options_that_make_no_sense_are_refused() -> None:
    with pytest.raises(SpecError, match="no kind of constraint 'types'"):
        DisruptiveOptions(kinds=("types",))
    with pytest.raises(SpecError, match="max_dim"):
        DisruptiveOptions(max_dim=0)
    with pytest.raises(UsageError, match="no operator is left"):
        producer(ops=("NoSuchOperator",))
    with pytest.raises(UsageError, match="no constraint can be broken"):
        producer(ops=("Abs",), kinds=("mixed",)).propose(random.Random(0))


@pytest.mark.parametrize("presentation", ["plain", "sizes", "ranks"])
def test_a_valid_call_is_never_proven_invalid(presentation: Presentation) -> None:
    tried = 0
    for seed, op in enumerate(OPS * 2):
        rng = stream(11, op, seed)
        try:
            single = draft_single(rng, op, "float32", 21, OperatorLimits(4, 5, 256), Style(integral=True), OPEN)
        except RejectedDraft:
            continue
        draft = take_apart(single, rng)
        assert PROVER.prove(draft, presentation, "elements") is None, draft
        assert PROVER.prove_declaration(draft) is None
        tried += 1
    assert tried > len(OPS)


def test_a_foreign_dtype_is_one_that_the_schema_lacks() -> None:
    known = schema("Add", 21)
    assert known is not None
    taken = {name.removeprefix("tensor(").removesuffix(")") for name in known.inputs[0].types}
    for seed in range(20):
        broken = break_dtype(random.Random(seed), addition())
        dtypes = {part.dtype for part in broken.draft.parts if part is not None} - {"float32"}
        assert len(dtypes) == 1
        assert not dtypes & taken
        proof = PROVER.prove(broken.draft, "plain", "none")
        assert proof is not None
        assert proof.kind == "checker"


def test_mixed_dtypes_are_each_taken_alone() -> None:
    broken = break_mixed(random.Random(1), addition())
    one, other = broken.draft.parts
    assert one is not None
    assert other is not None
    assert one.dtype != other.dtype
    assert "must have the same type" in broken.detail
    proof = PROVER.prove(broken.draft, "plain", "none")
    assert proof is not None
    assert "inconsistent type" in proof.message
    with pytest.raises(RejectedDraft):
        break_mixed(random.Random(1), transposition())


def test_sizes_that_stay_compatible_are_no_break() -> None:
    verdicts = Counter[bool]()
    for seed in range(60):
        try:
            broken = break_shape(random.Random(seed), addition())
        except RejectedDraft:
            continue
        shapes = [part.shape for part in broken.draft.parts if part is not None]
        try:
            np.broadcast_shapes(*shapes)
        except ValueError:
            fits = False
        else:
            fits = True
        proven = PROVER.prove(broken.draft, "plain", "form") is not None
        assert proven != fits, shapes
        verdicts[proven] += 1
    assert len(verdicts) == 2


def test_hidden_sizes_make_it_a_matter_of_the_run() -> None:
    part = DraftOperand(tensor(np.ones((2, 4), np.float32)), "fed", known=False)
    broken = replace(addition(), parts=(addition().parts[0], part))
    assert refusal_of_kind(broken, "plain") == "checker"
    assert refusal_of_kind(broken, "sizes") == "runtime"
    assert refusal_of_kind(broken, "ranks") == "runtime"


def refusal_of_kind(draft: InvalidDraft, presentation: Presentation) -> str:
    proof = PROVER.prove(draft, presentation, "form")
    return "" if proof is None else proof.kind


def test_a_rank_that_the_attributes_contradict() -> None:
    found = set()
    for seed in range(20):
        broken = break_rank(random.Random(seed), transposition())
        (part,) = broken.draft.parts
        assert part is not None
        assert len(part.shape) != 2
        found.add(refusal_of_kind(broken.draft, "plain"))
    assert "checker" in found
    assert found <= {"checker", "rule"}


def test_wrong_contents_are_proven_by_the_page_and_at_run_time_when_they_are_fed() -> None:
    proofs: dict[DraftRole, str] = {"constant": "rule", "structural": "runtime"}
    for role, kind in proofs.items():
        seen = set()
        for seed in range(40):
            try:
                broken = break_contents(random.Random(seed), reshaping(role))
            except RejectedDraft:
                continue
            proof = PROVER.prove(broken.draft, "plain", "elements")
            shape = broken.draft.parts[1]
            assert shape is not None
            if proof is not None and shape.role == role:
                seen.add(proof.kind)
        assert kind in seen
        assert seen <= {kind, "checker"}


def division(dtype: str) -> InvalidDraft:
    part = DraftOperand(tensor(np.full((2, 3), 5, dtype)), "fed", known=False)
    return InvalidDraft("Div", 21, (part, part), {}, (TensorType(dtype, (None, None)),))


def test_integers_are_proven_undefined_where_the_operator_has_no_result_for_them() -> None:
    verdicts = Counter[bool]()
    lowest = np.iinfo(np.int32).min
    for seed in range(200):
        broken = break_domain(random.Random(seed), division("int32"))
        top, bottom = (part.value.array for part in broken.draft.parts if part is not None)
        undefined = bool((bottom == 0).any() or ((bottom == -1).any() and (top == lowest).any()))
        proof = PROVER.prove_undefined(broken.draft)
        assert (proof is not None) == undefined, broken.detail
        verdicts[proof is not None] += 1
        assert broken.place in ("operand 0", "operand 1", "operand 0,1")
    assert len(verdicts) == 2


def test_floats_have_a_quotient_whatever_they_are() -> None:
    with pytest.raises(RejectedDraft):
        break_domain(random.Random(0), division("float32"))


def test_a_lowered_program_keeps_the_domain_of_its_operators() -> None:
    options = DisruptiveOptions(ops=("Div",), kinds=("domain",), dtypes=("int32",))
    case = DisruptiveProducer(options, OPEN, check=refusal_of).propose(stream(1, 0))
    assert case.recipe["counts"] == "deaths"
    with pytest.raises(UsageError, match="no operator is left"):
        DisruptiveProducer(options, OPEN, lowered=True, check=refusal_of)


def test_a_permutation_is_spoilt() -> None:
    found = set()
    for seed in range(60):
        try:
            broken = break_attribute(random.Random(seed), transposition())
        except RejectedDraft:
            continue
        if PROVER.prove(broken.draft, "plain", "form") is not None:
            assert sorted(broken.draft.attributes["perm"].value) != [0, 1]
            found.add(broken.key)
    assert len(found) > 4


def test_the_number_of_operands_and_results_is_changed() -> None:
    keys = set()
    for seed in range(60):
        broken = break_signature(random.Random(seed), addition())
        assert refusal_of_kind(broken.draft, "plain") == "checker", broken.detail
        keys.add(broken.key)
    assert {"results+", "operands+", "unknown"} <= keys


def test_a_declared_type_contradicts_inference_and_the_call_itself_is_sound() -> None:
    proofs = 0
    for seed in range(30):
        broken = break_declared(random.Random(seed), addition())
        proof = PROVER.prove_declaration(broken.draft)
        assert PROVER.prove(broken.draft, "plain", "form") is None
        proofs += proof is not None
    assert proofs > 15


def test_where_the_checker_dies_only_the_page_can_prove() -> None:
    mute = Prover(lambda payload: None)
    wrong = replace(transposition(), attributes=attributes({"perm": (0, 0)}))
    proof = mute.prove(wrong, "plain", "form")
    assert proof is not None
    assert proof.kind == "rule"
    assert mute.prove(wrong, "plain", "none") is None
    assert mute.prove_declaration(wrong) is None


def test_rules_that_cannot_read_a_call_prove_nothing() -> None:
    assert keeps_page(replace(reshaping(), parts=()), "form")


@given(
    st.sampled_from(sorted(DTYPES)[:14]),
    st.lists(st.integers(0, 4), max_size=4).map(tuple),
)
@settings(max_examples=60)
def test_parts_keep_their_storage_whatever_becomes_of_them(dtype: str, shape: tuple[int, ...]) -> None:
    part = DraftOperand(tensor(np.arange(6).reshape(2, 3)), "fed", known=False)
    if dtype not in ("string", "complex64", "bool", "bfloat16") and DTYPES[dtype].storage.name != dtype:
        return  # types that numpy lacks are not tried
    changed = part.cast(dtype).sized(shape)
    assert changed.shape == shape
    assert changed.dtype == dtype
    assert changed.value.array.dtype == DTYPES[dtype].storage


def test_the_checker_answers_each_model_in_a_line() -> None:
    valid = some_cases()[0].program.payload
    framed = b"".join(struct.pack("<Q", len(data)) + data for data in (valid, b"no model"))
    answers = io.BytesIO()
    serve(io.BytesIO(framed), answers)
    lines = answers.getvalue().splitlines()
    assert json.loads(lines[0]) == refusal_of(valid)
    assert json.loads(lines[1])

"""Saturation: what is found equal, where, how far, and by which chances."""

from collections import Counter

import pytest
from egraph_models import SHARED, cases, everything, model_of, ring, rule_text, rules_of, saturated, shared

from miscompile.base.errors import SpecError
from miscompile.graph.read import read
from miscompile.graph.text.parser import parse_model
from miscompile.transforms.egraph.program import OPAQUE, program_of
from miscompile.transforms.egraph.saturation import SaturationLimits, chosen, saturate


def test_terms_that_rules_make_equal_are_one_class() -> None:
    model = model_of("%a = Add(%x, %z) %b = Add(%z, %x) %c = Mul(%a, %x) %d = Mul(%x, %b) %y = Sub(%c, %d)")
    program, _, tally = saturated(model, ring())
    find, values = program.graph.find, program.values
    assert find(values["a"]) == find(values["b"])
    assert find(values["c"]) == find(values["d"])
    assert tally.unions["add-comm"] > 0
    assert tally.refused == Counter()


def test_limits_hold() -> None:
    body = " ".join(f"%a{n + 1} = Add(%a{n}, %{'xz'[n % 2]})" for n in range(12))
    model = model_of(f"%a0 = Neg(%x) {body} %y = Neg(%a12)")
    sizes = [len(saturated(model, ring(), limits=SaturationLimits(rounds, 2000, 0))[0].graph) for rounds in (1, 2, 3)]
    assert sizes == sorted(set(sizes))
    small = saturated(model, ring(), limits=SaturationLimits(9, 60, 0))[0]
    assert len(small.graph) <= 60 + 3


def test_saturation_ends_when_nothing_is_left_to_find() -> None:
    program = program_of(model_of("%a = Neg(%x) %y = Neg(%a)"))
    tally = saturate(program, ring(), SaturationLimits(50, 2000, 0), 0)
    assert tally.unions["neg-neg"] == 1
    assert tally.matches["neg-neg"] < 5
    assert program.graph.classes == 2  # x, which is also the negation of a; and a


def test_structural_rules_touch_the_program_only_and_as_often_as_asked() -> None:
    for amount in (0, 1, 2):
        _, _, tally = saturated(shared(), everything(), limits=SaturationLimits(3, 2000, amount))
        assert tally.unions["split-of-concat"] + tally.unions["add-tr"] <= amount * 8
        assert (tally.unions["split-of-concat"] > 0) == (amount > 0)
    _, _, tally = saturated(shared(), everything(), limits=SaturationLimits(3, 2000, 9))
    assert tally.unions["add-tr"] == 3
    assert tally.unions["split-of-concat"] == 8  # x, z and the six values; not the constant


def made_by(seed: int, body: str) -> dict[str, tuple[str, ...]]:
    """Return, for each value of the program that has any, the Transpose and Concat terms with their parameters."""
    program, _, _ = saturated(model_of(body), everything(), seed, SaturationLimits(1, 2000, 2))
    graph = program.graph
    index = {number: name for name, number in program.values.items()}
    found: dict[str, tuple[str, ...]] = {}
    for node, key in enumerate(graph.terms):
        if key is not None and graph.symbols[key[0]].op in ("Split", "Transpose"):
            owner = graph.find(graph.owners[node])
            name = index.get(owner, "")
            found[name] = tuple(sorted((*found.get(name, ()), str(graph.symbols[key[0]]))))
    found.pop("", None)
    return found


def test_chances_depend_on_the_value_and_not_on_what_stands_elsewhere() -> None:
    whole = "%a = Neg(%x) %b = Add(%a, %z) %c = Add(%b, %b) %d = Abs(%x) %e = Add(%d, %z) %y = Sub(%c, %e)"
    less = "%a = Neg(%x) %b = Add(%a, %z) %c = Add(%b, %b) %y = Abs(%c)"
    for seed in range(8):
        one, other = made_by(seed, whole), made_by(seed, less)
        for name in "abc":
            assert one[name] == other[name]
    assert len({str(made_by(seed, less)) for seed in range(8)}) > 4


def test_an_unsound_rule_is_refused_and_counted() -> None:
    bad = rules_of(rule_text("bad", "MatMul(x, z)", "Transpose(MatMul(z, x), perm=(1, 0))"))
    head, out = "%x: float32[2,3], %z: float32[3,4]", "%y: float32[2,4]"
    program, _, tally = saturated(model_of("%y = MatMul(%x, %z)", head, out), bad)
    assert tally.refused["bad"] == 1
    assert tally.unions["bad"] == 0
    assert len(program.graph) == 3


def test_what_the_language_cannot_say_equals_nothing_else() -> None:
    model = model_of(
        "%a = RandomNormalLike(%x) %b = RandomNormalLike(%x) %c = Add(%x, %a) %d = Add(%x, %b) %y = Mul(%c, %d)"
    )
    program, _, _ = saturated(model, ring())
    find = program.graph.find
    assert find(program.values["a"]) != find(program.values["b"])
    assert find(program.values["c"]) != find(program.values["d"])
    assert sum(symbol.op == OPAQUE for symbol in program.graph.symbols) == 2


def test_symbolic_sizes_are_opaque() -> None:
    model = model_of("%a = Neg(%x) %y = Neg(%a)", '%x: float32["n",3]', '%y: float32["n",3]')
    program, _, tally = saturated(model, ring())
    assert not tally.matches
    assert program.graph.find(program.values["x"]) != program.graph.find(program.values["y"])


def test_old_opsets_are_opaque() -> None:
    old = parse_model("ir 7 opset 12 graph g(%x: float32[2]) -> (%y: float32[2]) { %a = Neg(%x) %y = Neg(%a) }")
    assert not saturated(old, ring())[2].matches


def test_no_rule_of_the_library_is_refused_on_generated_graphs() -> None:
    fired = Counter[str]()
    for number, case in enumerate(cases(60)):
        _, _, tally = saturated(read(case.program.payload), chosen(), number)
        assert tally.refused == Counter()
        fired.update(tally.unions)
    assert len(fired) > 100


def test_a_share_of_the_groups_takes_part_and_over_many_graphs_all_do() -> None:
    groups = {rule.name: rule.group for rule in chosen().rules}
    model = read(cases(8)[5].program.payload)
    at_once = saturated(model, chosen(), 0, SaturationLimits(1, 2000, 0.0))[2]
    whole, seen = {groups[name] for name in at_once.matches}, []
    for seed in range(40):
        some = saturated(model, chosen(), seed, SaturationLimits(1, 2000, 0.0, 0.25))[2]
        assert saturated(model, chosen(), seed, SaturationLimits(1, 2000, 0.0, 0.25))[2] == some
        seen.append({groups[name] for name in some.matches})
        assert all(some.matches[name] == at_once.matches[name] for name in some.matches)
    assert len(whole) > 4
    assert set().union(*seen) == whole
    assert 0.15 * len(whole) < sum(map(len, seen)) / len(seen) < 0.35 * len(whole)


def test_the_mean_number_of_structural_rules_may_be_a_fraction() -> None:
    counts = [saturated(shared(), everything(), seed, SaturationLimits(1, 2000, 0.5))[2].unions for seed in range(60)]
    mean = sum(each["split-of-concat"] + each["add-tr"] for each in counts) / len(counts)
    assert 0.3 * 8 < mean < 0.7 * 8  # x, z and the six values


def test_rules_are_chosen_by_group_name_and_exactness() -> None:
    names = {rule.name for rule in chosen().rules}
    bits = {rule.name for rule in chosen("", "bits").rules}
    assert bits < names
    assert {rule.exactness for rule in chosen("", "bits").rules} == {"bits"}
    some = sorted(names)[0]
    assert [rule.name for rule in chosen(some).rules] == [some]
    with pytest.raises(SpecError, match="no rule or group"):
        chosen("nonsense")


def test_the_same_seed_gives_the_same_graph() -> None:
    def shape(seed: int) -> list[str]:
        program, _, _ = saturated(model_of(SHARED), everything(), seed)
        return [str((program.graph.symbols[key[0]], key[1:])) for key in program.graph.terms if key is not None]

    assert shape(5) == shape(5)
    assert shape(5) != shape(6)

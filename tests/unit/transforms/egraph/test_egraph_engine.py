"""The e-graph itself: hash-consing, union-find and congruence, against a naive closure."""

import itertools
from typing import TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st

from miscompile.transforms.egraph.engine import EGraph, mix, signature
from miscompile.transforms.rules.terms import Symbol, TermType

KIND = TermType("float32", (2,))
LEAVES = ("a", "b", "c", "d")

terms = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.one_of(st.tuples(st.just("f"), inner), st.tuples(st.just("g"), inner, inner)),
    max_leaves=6,
)
Term: TypeAlias = "str | tuple[str, Term] | tuple[str, Term, Term]"


def insert(graph: EGraph, term: Term) -> int:
    name, *operands = (term,) if isinstance(term, str) else term
    return graph.add(graph.intern(Symbol(name)), tuple(insert(graph, each) for each in operands), KIND, 0)


def subterms(term: Term) -> set[Term]:
    found = {term}
    if not isinstance(term, str):
        for each in term[1:]:
            found |= subterms(each)
    return found


def closure(every: list[Term], equal: list[tuple[Term, Term]]) -> dict[Term, int]:
    """Return the classes of `every` term under `equal` and congruence, in the most naive way."""
    number = {term: place for place, term in enumerate(every)}

    def merge(one: Term, other: Term) -> bool:
        if number[one] == number[other]:
            return False
        old, new = number[one], number[other]
        for term in every:
            if number[term] == old:
                number[term] = new
        return True

    for one, other in equal:
        merge(one, other)
    changed = True
    while changed:
        changed = False
        for one, other in itertools.combinations(every, 2):
            if isinstance(one, str) or isinstance(other, str) or one[0] != other[0]:
                continue
            if all(number[a] == number[b] for a, b in zip(one[1:], other[1:], strict=True)):
                changed = merge(one, other) or changed
    return number


@settings(max_examples=150)
@given(st.lists(terms, min_size=1, max_size=5), st.data())
def test_classes_are_those_of_the_naive_closure(roots: list[Term], data: st.DataObject) -> None:
    every = sorted(set().union(*map(subterms, roots)), key=repr)
    pairs = st.tuples(st.sampled_from(every), st.sampled_from(every))
    equal = data.draw(st.lists(pairs, max_size=4))
    graph = EGraph()
    number = {term: insert(graph, term) for term in every}
    late = data.draw(st.integers(0, len(equal)))
    for place, (one, other) in enumerate(equal):
        graph.unite(number[one], number[other])
        if place == late:
            graph.rebuild()
    graph.rebuild()
    expected = closure(every, equal)
    for one, other in itertools.combinations(every, 2):
        assert (graph.find(number[one]) == graph.find(number[other])) == (expected[one] == expected[other])
    assert graph.classes == len(set(expected.values()))


@settings(max_examples=100)
@given(st.lists(terms, min_size=1, max_size=5), st.data())
def test_after_rebuild_terms_are_canonical_and_different(roots: list[Term], data: st.DataObject) -> None:
    graph = EGraph()
    numbers = [insert(graph, term) for term in roots]
    for _ in range(3):
        graph.unite(data.draw(st.sampled_from(numbers)), data.draw(st.sampled_from(numbers)))
    graph.rebuild()
    live = [(node, term) for node, term in enumerate(graph.terms) if term is not None]
    assert len({term for _, term in live}) == len(live) == len(graph)
    for node, term in live:
        assert all(graph.find(child) == child for child in term[1:])
        assert node in graph.nodes_of(graph.find(graph.owners[node]))
        assert graph.node(term[0], term[1:]) == node
    assert sum(len(graph.nodes_of(number)) for number in graph.members) == len(graph)


def test_equal_terms_are_one_node() -> None:
    graph = EGraph()
    assert insert(graph, ("g", "a", "b")) == insert(graph, ("g", "a", "b"))
    assert len(graph) == graph.classes == 3


def test_the_older_class_keeps_its_number_and_key() -> None:
    graph = EGraph()
    first = graph.add(graph.intern(Symbol("a")), (), KIND, 17)
    second = graph.add(graph.intern(Symbol("b")), (), KIND, 18)
    assert graph.unite(second, first)
    assert not graph.unite(first, second)
    assert graph.find(second) == first
    assert graph.keys[first] == 17


def test_congruence_goes_up_through_several_terms() -> None:
    graph = EGraph()
    one, other = insert(graph, ("f", ("f", ("f", "a")))), insert(graph, ("f", ("f", ("f", "b"))))
    graph.unite(insert(graph, "a"), insert(graph, "b"))
    assert graph.find(one) != graph.find(other)
    graph.rebuild()
    assert graph.find(one) == graph.find(other)
    assert len(graph) == 5


def test_a_term_attached_to_a_class_is_in_it_and_merges_what_it_was() -> None:
    graph = EGraph()
    a, b = insert(graph, "a"), insert(graph, "b")
    graph.attach(graph.intern(Symbol("c")), (), a, 0)
    assert graph.find(insert(graph, "c")) == a
    graph.attach(graph.intern(Symbol("b")), (), a, 0)
    graph.rebuild()
    assert graph.find(b) == a


def test_places_of_the_program_survive_merging() -> None:
    graph = EGraph()
    one, other = insert(graph, ("f", "a")), insert(graph, ("f", "b"))
    nodes = [graph.node(graph.intern(Symbol("f")), (insert(graph, leaf),)) for leaf in "ab"]
    graph.origins.update(zip(filter(None, nodes), (4, 2), strict=True))
    graph.unite(insert(graph, "a"), insert(graph, "b"))
    graph.rebuild()
    assert graph.find(one) == graph.find(other)
    assert [graph.origins[node] for node in graph.nodes_of(graph.find(one))] == [2]


def test_an_index_holds_every_term_under_its_signature() -> None:
    graph = EGraph()
    number = insert(graph, ("g", ("f", "a"), "b"))
    index = graph.index()
    symbol = graph.intern(Symbol("g"))
    assert index[signature("g", 0, 2)] == {number: [(symbol, insert(graph, ("f", "a")), insert(graph, "b"))]}
    assert sum(len(keys) for table in index.values() for keys in table.values()) == len(graph)


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=4), st.integers(0, 3))
def test_mixing_depends_on_every_word(words: list[int], place: int) -> None:
    changed = [*words]
    changed[place % len(words)] ^= 1
    assert 0 <= mix(*words) < 2**64
    assert mix(*words) != mix(*changed)


def test_mixing_is_the_same_everywhere() -> None:
    assert [mix(0), mix(1, 2)] == [mix(0), mix(1, 2)]
    assert len({mix(seed, 1) % 16 for seed in range(200)}) == 16

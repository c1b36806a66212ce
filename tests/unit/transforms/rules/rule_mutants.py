"""Rules with one mistake: another operator on the right side, or its operands in the wrong order."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from miscompile.transforms.rules.rule import Apply, Rule, TermPattern

SIBLINGS = {
    "Add": "Sub", "Sub": "Add", "Mul": "Add", "Div": "Mul", "Max": "Min", "Min": "Max", "And": "Or", "Or": "And",
    "Xor": "Or", "BitwiseAnd": "BitwiseOr", "BitwiseOr": "BitwiseXor", "BitwiseXor": "BitwiseOr", "Less": "LessOrEqual",
    "Greater": "GreaterOrEqual", "LessOrEqual": "Less", "GreaterOrEqual": "Greater", "Neg": "Abs", "Abs": "Neg",
    "Relu": "Abs", "Tanh": "Sigmoid", "Sigmoid": "Tanh", "Exp": "Tanh", "Sqrt": "Exp", "Not": "Identity",
    "BitwiseNot": "Identity", "Floor": "Ceil", "Ceil": "Floor", "Sign": "Neg", "ReduceSum": "ReduceMax",
    "ReduceMax": "ReduceMin", "ReduceMin": "ReduceMax", "ReduceMean": "ReduceSum", "ArgMax": "ArgMin",
    "ArgMin": "ArgMax", "Equal": "LessOrEqual", "Sin": "Cos", "Cos": "Sin",
}  # fmt: skip
ORDERLESS = {"Add", "Mul", "Max", "Min", "And", "Or", "Xor", "Equal", "BitwiseAnd", "BitwiseOr", "BitwiseXor"}

HARMLESS = {
    ("make-Div-one", "Mul"), ("make-Add-zero", "Sub"), ("Softmax-shifted", "Add"), ("Softmax-shifted", "ReduceMin"),
    ("make-Max-itself", "Min"), ("make-Min-itself", "Max"), ("make-Relu-twice", "Abs"), ("Abs-as-Max", "Abs"),
    ("make-Abs-of-Abs", "Neg"), ("make-Abs-of-Neg", "Abs"), ("LessOrEqual-as-Or", "LessOrEqual"),
    ("Max-as-Where", "GreaterOrEqual"), ("Min-as-Where", "LessOrEqual"), ("Relu-as-Where", "GreaterOrEqual"),
}  # fmt: skip
"""Mutants that are equivalences after all: the rule, and the operator that was put in."""


def mutants(rule: Rule) -> Iterator[tuple[str, Rule]]:
    """Yield what was changed, and the changed rule."""
    for what, right in _mutants(rule.right, lambda part: part):
        yield what, replace(rule, right=right)


def _mutants(pattern: TermPattern, whole: Callable[[TermPattern], TermPattern]) -> Iterator[tuple[str, TermPattern]]:
    if not isinstance(pattern, Apply):
        return
    if pattern.op in SIBLINGS:
        yield SIBLINGS[pattern.op], whole(replace(pattern, op=SIBLINGS[pattern.op]))
    match pattern.arguments:
        case (first, second, *rest) if pattern.op not in ORDERLESS and first != second:
            yield "swapped", whole(replace(pattern, arguments=(second, first, *rest)))
    for place, argument in enumerate(pattern.arguments):
        yield from _mutants(argument, _putting(pattern, place, whole))


def _putting(
    pattern: Apply, place: int, whole: Callable[[TermPattern], TermPattern]
) -> Callable[[TermPattern], TermPattern]:
    def put(part: TermPattern) -> TermPattern:
        return whole(replace(pattern, arguments=(*pattern.arguments[:place], part, *pattern.arguments[place + 1 :])))

    return put

"""The page on what is proved of each rewrite rule, in Markdown."""

from collections import Counter
from collections.abc import Sequence

from miscompile.transforms.rules.proofs.prove import STATUSES, RuleProof

_HEAD = """# What is proved of the rewrite rules

`miscompile rules --prove --graphs 0 --trials 0 --markdown > docs/rule-proofs.md` makes this page. Each rule is
instantiated on small tensors; elements that both sides compute by the same operators from the same operands are equal in
every type. What remains is proved for all values: on integers and truth values by the laws of rings and of order, at every
width at once, or by z3 at each width; on floats by the laws of order or by z3 in each of the four formats. Rules that
round are proved equal in exact arithmetic. The domain on floats is the result of evaluating both sides, bit for bit: all
float16 and all bfloat16 numbers for one operand, all pairs of float8 numbers and float16 numbers against special ones for two,
special float16 numbers for more. A point that differs counts for the first of these reasons that fits: only the sign of a
zero; a NaN or an infinity among the operands; overflow; a subnormal number; rounding.

`sizes` is the greatest rank and the greatest size of an axis among the instances; a `+` says that they are a sample of those
up to these bounds. [Adding a rule](adding-a-rule.md#proofs) has the details.
"""


def page(proofs: Sequence[RuleProof]) -> str:
    """Return the page on `proofs`: the counts, and a table with a row for each rule."""
    counts = Counter(proof.status for proof in proofs)
    lines = [_HEAD, "| status | rules |", "|---|---:|"]
    lines.extend(f"| {status} | {counts[status]} |" for status in STATUSES)
    lines.extend(
        [
            "",
            "| rule | integers | floats | exceptions on floats | by | sizes | notes |",
            "|---|---|---|---|---|---|---|",
        ]
    )
    lines.extend(_row(proof) for proof in proofs)
    return "\n".join(lines) + "\n"


def _row(proof: RuleProof) -> str:
    shares = ", ".join(f"{why} {100 * share:.2g}%" for why, share in proof.exceptions)
    points = f"none of {proof.points} points" if proof.points else ""
    sizes = f"{proof.rank}, {proof.size}{'' if proof.complete else '+'}"
    cells = (
        f"`{proof.rule}`", proof.integers or "-", proof.floats or "-", shares or points or "-", ", ".join(proof.methods),
        sizes, proof.reason or "-",
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"

"""The transform `copies`: the program several times, which makes a doubling series of one pattern.

It changes what the program computes, so no oracle compares its values with those of the program itself. Other programs
than those of ONNX, and models without an input of a floating-point type, stay as they are.
"""

from dataclasses import dataclass

from miscompile.base.errors import RejectedDraft, SpecError
from miscompile.graph.copies import PATTERNS, repeated
from miscompile.graph.emit import model_proto
from miscompile.graph.model import Model
from miscompile.graph.read import read


@dataclass(frozen=True, slots=True)
class Copies:
    """Puts `n` copies of the program into one, by `pattern`: `chain`, `fan` or `nest` (see `graph.copies`)."""

    pattern: str = "chain"
    n: int = 2

    def __post_init__(self) -> None:
        if self.pattern not in PATTERNS or self.n < 1:
            raise SpecError(f"pattern is one of {', '.join(PATTERNS)}, and n at least 1")

    def apply(self, model: Model) -> Model:
        """Return the copies in one model. Raises RejectedDraft where they cannot be made."""
        try:
            return read(repeated(model_proto(model), self.pattern, self.n))
        except ValueError as error:
            raise RejectedDraft(str(error)) from None

"""The text of a side of a rule: operators with their operands in place and their parameters by name.

The notation resembles Python but has its own parser, because the library has more than a thousand sides and Python's
parser would take most of the loading time. Parameters stay text here.
"""

import re
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from miscompile.base.errors import SpecError
from miscompile.transforms.rules.expressions import ParameterExpression, expression
from miscompile.transforms.rules.rule import Apply, TermPattern, Variable
from miscompile.transforms.rules.terms import LANGUAGE

_NAME = re.compile(r"\s*([A-Za-z_]\w*)\s*(\(?)\s*")
_PARAMETER = re.compile(r"([A-Za-z]\w*)\s*=(?!=)\s*")
_SHORT = re.compile(r"[\w.]+(?=[,)])")
_PIECE = re.compile(r"[^\[\](){},'\"]+|'[^']*'|\"[^\"]*\"|.")
_OUTPUT = re.compile(r"\[(\w+)\]")
_AFTER = re.compile(r"\s*([,)])\s*")


@dataclass(frozen=True, slots=True)
class Written:
    """An operator as written, with OP as placeholder for each operator of a list; `output` is digits, or OP."""

    op: str
    parameters: dict[str, ParameterExpression]
    operands: tuple["Text", ...]
    output: str


Text: TypeAlias = Written | Variable


class Side:
    """A side of an entry, parsed once, and converted to a pattern for each operator that replaces OP."""

    def __init__(self, text: str, label: str) -> None:
        """Read `text`; `label` names the rule in errors. Raises SpecError for text that is no pattern."""
        self._text, self._label, self._place = text, label, 0
        self._whole = self._read()
        if text[self._place :].strip():
            self._fail()

    def pattern(self, op: str) -> TermPattern:
        """Return the pattern with `op` for OP. Raises SpecError for operators and parameters that do not exist."""
        return self._pattern(self._whole, op)

    def _fail(self) -> NoReturn:
        rest = self._text[self._place :]
        where = f"see '{rest}'" if rest else "it ends too early"
        raise SpecError(f"{self._label}: '{self._text}' is no pattern; {where}")

    def _read(self) -> Text:
        found = _NAME.match(self._text, self._place)
        if found is None:
            self._fail()
        self._place = found.end()
        if not found[2]:
            return Variable(found[1])
        parameters: dict[str, ParameterExpression] = {}
        operands: list[Text] = []
        more = not self._text.startswith(")", self._place)
        if not more:
            self._place += 1
        while more:
            named = _PARAMETER.match(self._text, self._place)
            if named is None:
                operands.append(self._read())
            else:
                self._place = named.end()
                parameters[named[1]] = expression(self._parameter())
            more = self._comma()
        return Written(found[1], parameters, tuple(operands), self._output())

    def _comma(self) -> bool:
        """Consume the delimiter after an argument; tell whether it was a comma."""
        found = _AFTER.match(self._text, self._place)
        if found is None:
            self._fail()
        self._place = found.end()
        return found[1] == ","

    def _output(self) -> str:
        found = _OUTPUT.match(self._text, self._place)
        if found is None:
            return "0"
        self._place = found.end()
        return found[1]

    def _parameter(self) -> str:
        """Consume an expression, up to the comma or bracket that ends it, and return it."""
        start = self._place
        short = _SHORT.match(self._text, start)
        if short is not None:
            self._place = short.end()
            return short[0]
        depth = 0
        for piece in _PIECE.finditer(self._text, start):
            if depth == 0 and piece[0] in (",", ")"):
                self._place = piece.start()
                return self._text[start : self._place].strip()
            depth += (piece[0] in ("(", "[", "{")) - (piece[0] in (")", "]", "}"))
        return self._fail()

    def _pattern(self, written: Text, op: str) -> TermPattern:
        if isinstance(written, Variable):
            return written
        name = op if written.op == "OP" else written.op
        operator = LANGUAGE.get(name)
        if operator is None:
            raise SpecError(f"{self._label}: there is no operator {name}; there are: {', '.join(LANGUAGE)}")
        if operator.arity is not None and len(written.operands) != operator.arity:
            raise SpecError(f"{self._label}: {name} has {operator.arity} operands, not {len(written.operands)}")
        if written.parameters.keys() != set(operator.parameters):
            raise SpecError(f"{self._label}: {name} needs ({', '.join(operator.parameters)}), each by name")
        output = op if written.output == "OP" else written.output
        if not output.isdigit():
            raise SpecError(f"{self._label}: '{output}' is no output")
        parameters = tuple([written.parameters[parameter] for parameter in operator.parameters])
        operands = tuple([self._pattern(operand, op) for operand in written.operands])
        return Apply(name, parameters, operands, int(output))

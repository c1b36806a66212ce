"""Tokens of the graph text, and the cursor with which the parser reads them."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

from miscompile.base.errors import ModelError

TokenKind = Literal["value", "mark", "number", "word", "string", "sign", "end"]
Item = TypeVar("Item")

_WORD = r"[A-Za-z_][A-Za-z0-9_.]*"
_VALUE = r"[A-Za-z0-9_./$]+"
_STRING = r'"(?:[^"\\\n]|\\.)*"'
_TOKEN = re.compile(
    rf"(?P<blank>[ \t\r\n]+|\#[^\n]*)"
    rf"|%(?P<value>{_VALUE}|{_STRING})"
    rf"|@(?P<mark>{_VALUE}|{_STRING})"
    r"|(?P<number>-?(?:0x[0-9A-Fa-f]+|(?:inf|nan)(?![\w.])|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?))"
    rf"|(?P<word>{_WORD})"
    rf"|(?P<string>{_STRING})"
    r"|(?P<sign>->|::|[()\[\]{}<>,:=?*])"
)
_BARE_WORD = re.compile(_WORD)
_BARE_VALUE = re.compile(_VALUE)
_NOT_WORDS = frozenset({"inf", "nan", "_"})


@dataclass(frozen=True, slots=True)
class Token:
    """A token: its kind, its text (names and strings unquoted), and its offset."""

    kind: TokenKind
    text: str
    start: int


def quote(text: str) -> str:
    """Return `text` in double quotes with JSON's escapes; unprintable characters are escaped."""
    return json.dumps(text, ensure_ascii=not text.isprintable())


def word(text: str) -> str:
    """Return a name (operator, domain, attribute, symbol, graph) as the text form writes it."""
    return text if _BARE_WORD.fullmatch(text) and text not in _NOT_WORDS else quote(text)


def value_name(text: str) -> str:
    """Return a value's name as the text form writes it."""
    return f"%{text}" if _BARE_VALUE.fullmatch(text) else f"%{quote(text)}"


def mark(text: str) -> str:
    """Return a node's name or a reference to a function's attribute as the text form writes it."""
    return f"@{text}" if _BARE_VALUE.fullmatch(text) else f"@{quote(text)}"


class Cursor:
    """A position in the tokens of a text. Every error is a ModelError that names line and column."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._lex()
        self._next = 0

    @property
    def token(self) -> Token:
        """The token at the cursor."""
        return self._tokens[self._next]

    def take(self) -> Token:
        """Return the token at the cursor and move on."""
        token = self._tokens[self._next]
        self._next += token.kind != "end"
        return token

    def at(self, *texts: str) -> bool:
        """Tell whether the token at the cursor is one of these signs or words."""
        return self.token.kind in ("sign", "word") and self.token.text in texts

    def accept(self, text: str) -> bool:
        """Consume the sign or word `text` if it is at the cursor, and tell whether it was."""
        if not self.at(text):
            return False
        self._next += 1
        return True

    def expect(self, text: str) -> None:
        """Consume the sign or word `text`, which must be at the cursor."""
        if not self.accept(text):
            raise self.error(f"expected {text!r} but found {self._found()}")

    def expect_kind(self, kind: TokenKind, what: str) -> str:
        """Return the text of the token at the cursor, which must be of `kind`; `what` names it in errors."""
        if self.token.kind != kind:
            raise self.error(f"expected {what} but found {self._found()}")
        return self.take().text

    def name(self, what: str) -> str:
        """Return a name, bare or quoted."""
        if self.token.kind not in ("word", "string"):
            raise self.error(f"expected {what} but found {self._found()}")
        return self.take().text

    def integer(self, what: str) -> int:
        """Return a decimal integer."""
        token = self.token
        self.expect_kind("number", what)
        return self.as_integer(token, 10)

    def as_integer(self, token: Token, base: int) -> int:
        """Return the integer that `token` denotes, which must fit in 64 bits."""
        try:
            number = int(token.text, base)
        except ValueError:
            raise self.error(f"expected an integer but found {token.text[:40]!r}", token) from None
        if not -(2**63) <= number < 2**63:
            raise self.error(f"{token.text[:40]} does not fit in 64 bits", token)
        return number

    def value(self) -> str:
        """Return the name of a value."""
        return self.expect_kind("value", "a value such as %x")

    def operand(self) -> str:
        """Return the name of a value, or "" for `_`."""
        return "" if self.accept("_") else self.expect_kind("value", "a value such as %x, or '_'")

    def items(self, opening: str, closing: str, item: Callable[["Cursor"], Item]) -> tuple[Item, ...]:
        """Return the results of `item` between `opening` and `closing`, separated by commas; the list may be empty."""
        self.expect(opening)
        return self.rest(closing, item)

    def rest(self, closing: str, item: Callable[["Cursor"], Item]) -> tuple[Item, ...]:
        """Return the results of `item` up to `closing`, as `items` does after the opening sign."""
        found: list[Item] = []
        while not self.accept(closing):
            if found:
                self.expect(",")
            found.append(item(self))
        return tuple(found)

    def error(self, message: str, token: Token | None = None) -> ModelError:
        """Return a ModelError with `message` and the position of `token`, by default the token at the cursor."""
        return self._error_at(message, (token or self.token).start)

    def _found(self) -> str:
        token = self.token
        if token.kind == "end":
            return "the end"
        prefix = {"value": "%", "mark": "@"}.get(token.kind, "")
        return repr(prefix + token.text)

    def _error_at(self, message: str, start: int) -> ModelError:
        line = self._text.count("\n", 0, start) + 1
        column = start - self._text.rfind("\n", 0, start)
        return ModelError(f"graph text, line {line}, column {column}: {message}")

    def _lex(self) -> list[Token]:
        tokens: list[Token] = []
        place = 0
        while place < len(self._text):
            found = _TOKEN.match(self._text, place)
            if found is None:
                raise self._error_at(f"cannot read {self._text[place]!r}", place)
            kind = found.lastgroup
            if kind != "blank":
                text = found[kind]  # type: ignore[index]
                if text.startswith('"'):
                    text = self._unquote(text, place)
                tokens.append(Token(kind, text, place))  # type: ignore[arg-type]
            place = found.end()
        tokens.append(Token("end", "", len(self._text)))
        return tokens

    def _unquote(self, text: str, start: int) -> str:
        try:
            return str(json.loads(text))
        except ValueError:
            raise self._error_at(f"{text} is not a well-formed string", start) from None

"""Messages of compilers without what varies from case to case."""

import re

_LENGTH = 300
_READ = 4000
_ROUNDS = 5

_MASKS: tuple[tuple["re.Pattern[str]", str], ...] = tuple(
    (re.compile(pattern), mask)
    for pattern, mask in (
        (r"\x1b\[[0-9;]*[A-Za-z]", ""),
        (r"(?<![\w.])(?:[A-Za-z]:)?(?:[\w.+~-]*/)+([\w+-]+\.(?:cc|cpp|cxx|c|cu|h|hpp|inc|inl|py|rs|td))\b", r"\1"),
        (r"(?<![\w.<])/(?:[\w.+~-]+/)*[\w.+~-]+", "<path>"),
        (r"\bIn Node, \(.*\) ?, Error\b", "In Node <name>, Error"),
        (r"\b0[xX][0-9a-fA-F]+\b", "<address>"),
        (r'"[^"]*"|(?<!\w)\'[^\']*\'|`[^`\']*[`\']', "<name>"),
        (r"%[\w.]+|(?<=, )(?:true|false)\b|\b(?:true|false)(?=, )", "<value>"),  # operands in LLVM's text
        (r"\blocal:\w+", "local:<name>"),  # a function of the model, in ONNX Runtime's words
        (r"\b(arg|operator|parameter) \([^()]*\)", r"\1 <name>"),
        (r"\b([Nn]ode)(?: name)?\s*(?:\([^()]*\)|:\s*[\w./-]+)", r"\1 <name>"),
        (r"[{\[(]\s*(?:(?:-?\d+|\?|None)\s*,?\s*)+[}\])]|\{\s*\}|\[\s*\]", "<shape>"),
        (r"\b\d+(?:x\d+)+\b", "<shape>"),
        (r"\d+", "#"),
        (r"\s+", " "),
    )
)


def normalise(message: str) -> str:
    """Mask what varies from case to case: digits, addresses, quoted and node names, paths, shapes.

    Source files keep their base name. At most 300 characters; normalising twice changes nothing.
    """
    text = message[:_READ].strip()
    for _ in range(_ROUNDS):
        before = text
        for pattern, mask in _MASKS:
            text = pattern.sub(mask, text)
        if text == before:
            break
    return text[:_LENGTH].strip()

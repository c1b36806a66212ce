"""The rules that ship with the tool, and rules of the user's own."""

from functools import cache
from importlib.resources import files
from pathlib import Path

from miscompile.base.errors import SpecError
from miscompile.transforms.rules.parse import parse_rules
from miscompile.transforms.rules.rule import Rule

DATA = "miscompile.transforms.rules"


@cache
def library() -> tuple[Rule, ...]:
    """Return every rule that ships with the tool, in order of file and place; the tests certify each of them.

    Raises SpecError when two rules have one name.
    """
    found: dict[str, Rule] = {}
    folder = files(DATA).joinpath("data")
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if not entry.name.endswith(".toml"):
            continue
        for rule in parse_rules(entry.read_text("utf-8"), entry.name, checked=False):
            if rule.name in found:
                raise SpecError(f"{entry.name}: there are two rules called {rule.name}")
            found[rule.name] = rule
    return tuple(found.values())


def groups() -> tuple[str, ...]:
    """Return the names of the groups of the library, in order."""
    return tuple(dict.fromkeys(rule.group for rule in library()))


def chosen(words: str) -> tuple[Rule, ...]:
    """Return the rules selected by `words`, groups and names joined with `+`; all of them for an empty text.

    Raises SpecError for a word that is neither.
    """
    asked = [word for word in words.split("+") if word]
    known = {*groups(), *(rule.name for rule in library())}
    for word in asked:
        if word not in known:
            raise SpecError(f"there is no rule or group '{word}'; groups: {', '.join(groups())}")
    return tuple(rule for rule in library() if not asked or rule.group in asked or rule.name in asked)


def user_rules(path: Path, trials: int = 60, seed: int = 0) -> tuple[Rule, ...]:
    """Return the rules of the user's own file, each certified first.

    Raises SpecError when the file is malformed or a rule is not sound, with the rule's name and a counterexample, or
    when the certifier could not build a single example of its left side.
    """
    from miscompile.transforms.rules.certify import certify

    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise SpecError(f"{path}: {error.strerror or error}") from None
    rules = parse_rules(text, path.name)
    taken = {rule.name for rule in library()}
    for rule in rules:
        if rule.name in taken:
            raise SpecError(f"{path.name}: a rule called {rule.name} ships with the tool; choose another name")
        certificate = certify(rule, trials, seed)
        if not certificate.accepted:
            raise SpecError(f"{path.name}: rule {rule.name} is not sound: {certificate.reason}")
    return rules

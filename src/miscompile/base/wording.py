"""Numbers in sentences."""


def counted(number: int, noun: str) -> str:
    """Return a number with its regular noun: `1 finding`, `2,000 findings`, `0 passes`."""
    ending = "" if number == 1 else "es" if noun.endswith("s") else "s"
    return f"{number:,} {noun}{ending}"

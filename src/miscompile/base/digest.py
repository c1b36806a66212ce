"""Digests that are stable over processes and versions."""

import hashlib


def digest_words(*words: str | int) -> int:
    """Return a 64-bit integer that depends on every word and on its position."""
    text = "\x1f".join(f"{type(word).__name__[0]}{word}" for word in words)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def digest_bytes(*parts: bytes, length: int = 16) -> str:
    """Return the first `length` hexadecimal digits of the SHA-256 over `parts`, each framed by its length."""
    state = hashlib.sha256()
    for part in parts:
        state.update(len(part).to_bytes(8, "little"))
        state.update(part)
    return state.hexdigest()[:length]

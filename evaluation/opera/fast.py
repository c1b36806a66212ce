"""FAST-pw: tests by dissimilarity of their texts, in time that is nearly linear.

B. Miranda, E. Cruciani, R. Verdecchia, A. Bertolino, "FAST Approaches to Scalable Similarity-Based Test Case
Prioritization", ICSE 2018; written from the published algorithm. A test is the set of its shingles, the substrings of
`SHINGLE` characters; its signature holds, for each of `BANDS` * `ROWS` hash functions, the least hash of its shingles,
so that the share of equal entries of two signatures estimates the Jaccard similarity of their sets. The tests that are
ranked already are one set, their union, whose signature is the least of theirs entry by entry. Tests that share a band
with it are similar to it. From the others the one with the greatest estimated distance comes next. When all are
similar, the union starts anew as the empty set.
"""

import numpy as np
import numpy.typing as npt

from miscompile.base.rng import array_stream

SHINGLE = 5
"""Length of a shingle, as in the paper's black-box experiments."""

BANDS = 10
ROWS = 1
"""Bands of a signature and hash functions in a band: ten functions and one in a band, as in the paper."""

_Words = npt.NDArray[np.uint64]


def fast(texts: list[str], seed: int) -> list[int]:
    """Return the places of `texts` in the order of FAST-pw; the seed chooses the hash functions and between equals."""
    rng = array_stream(seed, "order", "fast")
    ties = rng.permutation(len(texts))
    signatures = _signatures([texts[place] for place in ties], rng)
    return [int(ties[number]) for number in _ranked(signatures)]


def _ranked(signatures: _Words) -> list[int]:
    """Return the rows of `signatures` by FAST-pw; of equally distant ones, the first comes first.

    Distances and similar tests change only when the union's signature does, which happens ever more rarely.
    """
    count, width = signatures.shape
    left = np.ones(count, bool)
    empty = np.full(width, np.iinfo(np.uint64).max, np.uint64)
    union, found = empty, list[int]()
    candidates = _by_distance(signatures, union, left)
    while len(found) < count:
        if not candidates:
            union = empty
            candidates = _by_distance(signatures, union, left)
        taken = candidates.pop()
        found.append(taken)
        left[taken] = False
        joined = np.minimum(union, signatures[taken])
        if (joined != union).any():
            union = joined
            candidates = _by_distance(signatures, union, left)
    return found


def _by_distance(signatures: _Words, union: _Words, left: npt.NDArray[np.bool_]) -> list[int]:
    """Return the rows that are left and share no band with `union`, the most distant last."""
    alike = signatures == union
    similar = alike.reshape(len(signatures), BANDS, ROWS).all(axis=2).any(axis=1)
    rows = np.flatnonzero(left & ~similar)
    nearness = alike[rows].sum(axis=1)
    order: list[int] = rows[np.argsort(nearness, kind="stable")][::-1].tolist()
    return order


def _signatures(texts: list[str], rng: np.random.Generator) -> _Words:
    """Return the minhash signature of every text, one row a text."""
    width = BANDS * ROWS
    factors = rng.integers(0, 2**63, width, np.uint64) * np.uint64(2) + np.uint64(1)
    terms = rng.integers(0, 2**63, width, np.uint64)
    found = np.empty((len(texts), width), np.uint64)
    for row, text in enumerate(texts):
        shingles = _shingles(text)
        found[row] = ((shingles[:, None] * factors + terms) >> np.uint64(16)).min(axis=0)
    return found


def _shingles(text: str) -> _Words:
    """Return the distinct substrings of `SHINGLE` bytes as integers; a text that is shorter is one shingle."""
    raw = np.frombuffer(text.encode().ljust(SHINGLE, b"\0"), np.uint8).astype(np.uint64)
    words = np.zeros(len(raw) - SHINGLE + 1, np.uint64)
    for offset in range(SHINGLE):
        words = (words << np.uint64(8)) | raw[offset : offset + len(words)]
    return np.unique(words)

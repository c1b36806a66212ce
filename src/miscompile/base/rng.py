"""Named random streams: randomness is an argument, and a stream is determined by its name."""

import random

import numpy as np

from miscompile.base.digest import digest_words


def stream(seed: int, *path: str | int) -> random.Random:
    """Return the random stream called `path` under `seed`.

    The same seed and path give the same stream in every process and version of Python, because the state is
    derived by SHA-256 and not by `hash`. Zero is a seed like any other.
    """
    return random.Random(digest_words(seed, *path))


def array_stream(seed: int, *path: str | int) -> np.random.Generator:
    """Return the numpy twin of `stream`, for drawing whole arrays."""
    return np.random.Generator(np.random.PCG64(digest_words(seed, *path)))

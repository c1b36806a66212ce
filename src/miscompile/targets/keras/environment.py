"""The back end of Keras, and the environment variables that its process requires at its start.

Keras reads its back end once, when it is imported, so each process has one. This module does not import Keras at the
top.
"""

import importlib
import os
import sys
from typing import Any

from miscompile.targets.xla.environment import prepare as prepare_jax

VARIABLE = "KERAS_BACKEND"
LIBRARY = "jax"
"""The back end that computes the reference results."""


def prepare() -> dict[str, str]:
    """Return the variables: operations run on JAX without optional passes."""
    return {**prepare_jax(), VARIABLE: LIBRARY}


def load(backend: str) -> Any:  # noqa: ANN401 - a module
    """Import Keras on `backend` and reset the user's settings. Raises RuntimeError when Keras has another back end."""
    os.environ[VARIABLE] = backend
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    keras = sys.modules.get("keras") or importlib.import_module("keras")
    if keras.config.backend() != backend:
        raise RuntimeError(f"Keras runs on {keras.config.backend()} in this process and cannot change to {backend}")
    keras.config.set_floatx("float32")
    keras.config.set_epsilon(1e-7)
    keras.config.set_image_data_format("channels_last")
    return keras

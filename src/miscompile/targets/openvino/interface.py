"""OpenVINO's Python interface, wherever the installed release has it; standalone scripts contain it."""

from importlib import import_module
from typing import Any

import openvino

ov: Any = openvino if hasattr(openvino, "Core") else import_module("openvino.runtime")
"""The interface; releases before 2023.1 have it in a package of its own."""


def save_model(read: Any, path: str) -> None:  # noqa: ANN401 - a model of OpenVINO
    """Save a model in OpenVINO's format as it is; releases before 2023.1 do not compress float32."""
    if hasattr(ov, "save_model"):
        ov.save_model(read, path, compress_to_fp16=False)
    else:
        ov.serialize(read, path)

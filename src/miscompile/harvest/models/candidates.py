"""Model files that the user names: those of an installed package, files and folders.

Nothing is downloaded. A package that is not installed is a usage error that says how to install it.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from miscompile.base.errors import UsageError
from miscompile.harvest.models.entry import ModelOrigin

ONNX = "ONNX"

FORMS = {
    ".onnx": ONNX,
    ".ort": "ORT",
    ".tflite": "TFLite",
    "saved_model.pb": "SavedModel",
    ".jit": "TorchScript",
    ".torchscript": "TorchScript",
    ".mlmodel": "Core ML",
}
"""Formats by the end of a file's name."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model file before it is read; the fields are those of `CorpusModel`."""

    name: str
    origin: ModelOrigin
    package: str
    version: str
    path: Path
    form: str


def form_of(path: Path) -> str:
    """Return the format of a file; empty when it is no model."""
    return next((form for end, form in FORMS.items() if path.name.lower().endswith(end)), "")


def in_package(package: str) -> list[Candidate]:
    """Return the model files of an installed distribution. Raises UsageError when it is absent or has none."""
    try:
        found = metadata.distribution(package)
    except (metadata.PackageNotFoundError, ValueError):
        raise UsageError(f"the package {package} is not installed; run: pip install {package}") from None
    name = str(found.metadata["Name"]).lower().replace("_", "-")
    files = [Path(str(found.locate_file(file))) for file in found.files or () if form_of(Path(str(file)))]
    inner = [(path, Path(*Path(str(file)).parts[1:])) for path, file in _paired(found, files)]
    candidates = [
        Candidate(f"{name}/{short.as_posix()}", "package", name, found.version, path, form_of(path))
        for path, short in inner
        if path.is_file()
    ]
    if not candidates:
        raise UsageError(f"the package {name} {found.version} has no model files; there are: {_forms()}")
    return sorted(candidates, key=lambda one: one.name)


def _paired(found: metadata.Distribution, paths: list[Path]) -> Iterator[tuple[Path, str]]:
    """Yield each path with its name inside the site-packages folder."""
    root = Path(str(found.locate_file("")))
    for path in paths:
        yield path, os.path.relpath(path, root)


def at_path(text: str) -> list[Candidate]:
    """Return the model file at a path, or all below a folder. Raises UsageError when there is none."""
    path = Path(text)
    if path.is_dir():
        files = sorted(one for one in path.rglob("*") if one.is_file() and form_of(one))
        if not files:
            raise UsageError(f"there is no model file in {path}; there are: {_forms()}")
        return [_of_file(one, f"{path.name or 'models'}/{one.relative_to(path).as_posix()}") for one in files]
    if not path.is_file():
        raise UsageError(f"there is no file or folder {path}")
    if not form_of(path):
        raise UsageError(f"{path} is no model file; there are: {_forms()}")
    return [_of_file(path, path.name)]


def _of_file(path: Path, name: str) -> Candidate:
    return Candidate(name, "path", "", "", path.absolute(), form_of(path))


def _forms() -> str:
    return ", ".join(FORMS)

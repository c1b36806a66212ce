"""The exporter's child process: `python -m miscompile.harvest.models.hooks.export LIBRARY NAME FILE`.

Makes the architecture with random weights from a fixed seed, and writes it to FILE as ONNX.
"""

import sys
from typing import Any

_OPSET = 18
_SIDE, _LENGTH = 224, 16

_SMALLER = {
    "num_hidden_layers": 2, "n_layer": 2, "num_layers": 2, "encoder_layers": 2, "decoder_layers": 2, "n_layers": 2,
}  # fmt: skip
"""Language models repeat one layer; two of them have all that is to be found."""


def _of_timm(name: str) -> tuple[Any, tuple[Any, ...]]:
    import timm
    import torch

    model = timm.create_model(name, pretrained=False)
    size = model.default_cfg.get("input_size", (3, _SIDE, _SIDE))
    return model, (torch.randn(1, *size),)


def _of_torchvision(name: str) -> tuple[Any, tuple[Any, ...]]:
    import torch
    import torchvision

    options = {"weights_backbone": None} if "backbone" in str(torchvision.models.get_model_builder(name)) else {}
    return torchvision.models.get_model(name, weights=None, **options), (torch.randn(1, 3, _SIDE, _SIDE),)


def _of_transformers(name: str) -> tuple[Any, tuple[Any, ...]]:
    import torch
    import transformers

    usual = transformers.AutoConfig.for_model(name)
    smaller = {key: value for key, value in _SMALLER.items() if hasattr(usual, key)}
    config = transformers.AutoConfig.for_model(name, **smaller, return_dict=False, use_cache=False)
    model = transformers.AutoModel.from_config(config)
    if model.main_input_name == "pixel_values":
        side = config.image_size if isinstance(getattr(config, "image_size", None), int) else _SIDE
        return model, (torch.randn(1, getattr(config, "num_channels", 3), side, side),)
    return model, (torch.randint(0, min(100, config.vocab_size), (1, _LENGTH)),)


_MAKERS = {"timm": _of_timm, "torchvision": _of_torchvision, "transformers": _of_transformers}


def _export_keras(name: str, path: str) -> None:
    import keras
    import numpy as np

    model = getattr(keras.applications, name)(weights=None)
    sizes = [size or _SIDE for size in model.input_shape[1:]]
    model(np.zeros((1, *sizes), np.float32))  # Keras exports no model that was never called
    model.export(path, format="onnx", verbose=False)


def export(library: str, name: str, path: str) -> None:
    """Write an architecture to `path`. Raises what the library raises for an unknown name."""
    import torch

    torch.manual_seed(0)
    if library == "keras":
        _export_keras(name, path)
        return
    model, inputs = _MAKERS[library](name)
    torch.onnx.export(model.eval(), inputs, path, opset_version=_OPSET, dynamo=True, external_data=False)


if __name__ == "__main__":
    export(*sys.argv[1:4])

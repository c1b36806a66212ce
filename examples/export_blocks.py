"""Exports four small torch blocks as ONNX models, to be used as seeds or to be checked.

    python examples/export_blocks.py blocks
    miscompile fuzz onnxruntime --seed-models blocks
    miscompile check blocks/convolution.onnx --target onnxruntime --target openvino

Needs torch. The blocks are what most networks are made of: attention with a feed-forward part, a residual convolution
with batch normalisation, a step of a recurrent cell, and a recurrent layer.
"""

import argparse
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

OPSET = 17


class Attention(nn.Module):
    """A transformer block: self-attention and a feed-forward part, each with a residual and a normalisation."""

    def __init__(self, width: int = 16, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's result for `x` of shape [batch, length, width]."""
        batch, length, width = x.shape
        normal = self.first(x)
        query, key, value = (
            part(normal).reshape(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        scores = query @ key.transpose(2, 3) / (width // self.heads) ** 0.5
        mixed = torch.softmax(scores, -1) @ value
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.narrow(nn.functional.gelu(self.wide(self.second(x))))


class Convolution(nn.Module):
    """A residual block: two convolutions with batch normalisation, pooled and classified."""

    def __init__(self, channels: int = 8) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, groups=2, bias=False)
        self.normal, self.other = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)
        self.classes = nn.Linear(channels, 5)

    def forward(self, x: Tensor) -> Tensor:
        """Return class probabilities for images `x` of shape [batch, 3, height, width]."""
        stem = torch.relu(self.normal(self.first(x)))
        pooled = nn.functional.max_pool2d(stem, 2)
        body = pooled + nn.functional.hardswish(self.other(self.second(pooled)))
        squeezed = body * torch.sigmoid(body.mean((2, 3), keepdim=True))
        flat = nn.functional.adaptive_avg_pool2d(squeezed, 1).flatten(1)
        return torch.softmax(self.classes(flat), 1)


class Cell(nn.Module):
    """One step of an LSTM cell, written out."""

    def __init__(self, width: int = 6, hidden: int = 8) -> None:
        super().__init__()
        self.gates = nn.Linear(width + hidden, 4 * hidden)

    def forward(self, x: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        """Return the next hidden and cell state for `x` of shape [batch, width]."""
        into, forget, kept, out = self.gates(torch.cat((x, hidden), 1)).chunk(4, 1)
        state = torch.sigmoid(forget) * cell + torch.sigmoid(into) * torch.tanh(kept)
        return torch.sigmoid(out) * torch.tanh(state), state


class Recurrent(nn.Module):
    """An LSTM and a GRU layer over a sequence, and a projection of the last step."""

    def __init__(self, width: int = 6, hidden: int = 8) -> None:
        super().__init__()
        self.lstm = nn.LSTM(width, hidden, batch_first=True)
        self.gru = nn.GRU(hidden, hidden, batch_first=True)
        self.last = nn.Linear(hidden, 3)

    def forward(self, x: Tensor) -> Tensor:
        """Return the projection for `x` of shape [batch, length, width]."""
        return self.last(self.gru(self.lstm(x)[0])[0][:, -1])


def blocks() -> dict[str, tuple[nn.Module, tuple[Tensor, ...]]]:
    """Return every block by name with the inputs that it is exported with."""
    torch.manual_seed(0)
    return {
        "attention": (Attention(), (torch.randn(2, 5, 16),)),
        "convolution": (_settled(Convolution()), (torch.randn(2, 3, 12, 12),)),
        "cell": (Cell(), (torch.randn(2, 6), torch.randn(2, 8), torch.randn(2, 8))),
        "recurrent": (Recurrent(), (torch.randn(2, 5, 6),)),
    }


def _settled(block: nn.Module) -> nn.Module:
    """Give batch normalisations statistics other than zero and one, so that folding them has something to do."""
    for part in block.modules():
        if isinstance(part, nn.BatchNorm2d):
            nn.init.uniform_(part.running_mean, -1, 1)
            nn.init.uniform_(part.running_var, 0.5, 2)
            nn.init.uniform_(part.weight, 0.5, 1.5)
            nn.init.uniform_(part.bias, -1, 1)
    return block


def export(folder: Path) -> list[Path]:
    """Write every block to `folder` and return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, (block, inputs) in blocks().items():
        place = folder / f"{name}.onnx"
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")  # the exporter without onnxscript is called deprecated
            names = [f"x{number}" for number in range(len(inputs))]
            block.eval()
            # Without folding, batch normalisations and computed shapes stay for the compilers to optimise.
            torch.onnx.export(
                block,
                inputs,
                str(place),
                input_names=names,
                opset_version=OPSET,
                dynamo=False,
                do_constant_folding=False,
                training=torch.onnx.TrainingMode.PRESERVE,
            )
        written.append(place)
    return written


def main() -> None:
    """Export to the folder named on the command line."""
    parser = argparse.ArgumentParser(description="Export small torch blocks as ONNX models.")
    parser.add_argument("folder", type=Path)
    for place in export(parser.parse_args().folder):
        print(place)


if __name__ == "__main__":
    main()

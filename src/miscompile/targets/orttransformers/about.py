"""The description of ONNX Runtime's optimiser of transformer models, which does not import it."""

from miscompile.targets.about import About
from miscompile.targets.optimisers.description import OPTIONS, optimiser

FUSIONS = (
    "gelu",
    "layer_norm",
    "attention",
    "rotary_embeddings",
    "skip_layer_norm",
    "embed_layer_norm",
    "bias_skip_layer_norm",
    "bias_gelu",
    "qordered_matmul",
    "shape_inference",
    "nhwc_conv",
    "group_norm",
    "skip_group_norm",
    "bias_splitgelu",
    "packed_qkv",
    "packed_kv",
    "bias_add",
)
"""The attributes of FusionOptions without `enable_`; those from `nhwc_conv` on are for diffusion models only."""

ABOUT: About = optimiser(
    "orttransformers",
    "OrtTransformers",
    FUSIONS,
    optimised="miscompile.targets.orttransformers.runner:fused",
    distributions=("onnxruntime", "onnx", "sympy"),
    options={**OPTIONS, "model": "the type of model: bert (default), gpt2, t5, vit, swin, clip, unet, vae, ..."},
    extra="optimisers",
    switches="the attributes enable_... of FusionOptions; other steps always run",
)

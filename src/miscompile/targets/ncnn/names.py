"""Names of what ncnn can do without, by which builds switch it off."""

PACKING, SGEMM, LIGHT = "packing_layout", "sgemm_convolution", "light_mode"

ACTIVATIONS = "fused_activations"

PASSES = (PACKING, SGEMM, LIGHT, ACTIVATIONS)
"""ncnn's options without their prefix `use_`, except for two: `light_mode` is `lightmode`, by which the memory of a
result is reused after its last reader, and `fused_activations` is a step of this package that, as ncnn's converters
do, makes an activation a parameter of the convolution before it."""

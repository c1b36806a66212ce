"""Names of what ExecuTorch can do without, by which builds switch it off."""

CONFIGS = (
    "AbsConfig", "AddConfig", "AddmmConfig", "AvgPoolingConfig", "BMMConfig", "BatchNormConfig", "CatConfig",
    "CeilConfig", "ClampConfig", "CloneConfig", "CloneDimOrderConfig", "ConstantPadConfig", "ConvolutionConfig",
    "CosConfig", "DivConfig", "ExpConfig", "FloorConfig", "GeluConfig", "HardswishConfig", "HardtanhConfig",
    "LeakyReLUConfig", "LinearConfig", "LogConfig", "MMConfig", "MaxDimConfig", "MaxPool2dConfig", "MaximumConfig",
    "MeanDimConfig", "MinimumConfig", "MulConfig", "NegConfig", "PermuteConfig", "PowConfig", "PreluConfig",
    "ReLUConfig", "ReciprocalSquareRootConfig", "SigmoidConfig", "SinConfig", "SliceCopyConfig", "SoftmaxConfig",
    "SquareRootConfig", "SubConfig", "TanhConfig", "ToDimOrderCopyConfig", "UnsqueezeCopyConfig",
    "UpsampleBilinear2dConfig", "ViewCopyConfig",
)  # fmt: skip
"""The configurations by which the partitioner gives operators to XNNPACK, without those of quantised operators."""

GROUPING, REUSE, VIEWS = "partition_grouping", "memory_reuse", "remove_view_copy"

PASSES = (*CONFIGS, GROUPING, REUSE, VIEWS)
"""All that builds can switch off. `partition_grouping` joins neighbouring operators in one delegate (its opposite is
the partitioner's `per_op_mode`), `memory_reuse` lets inner results share memory (without it the planner `naive` is
used), and `remove_view_copy` is ExecuTorch's option that turns copies into views."""

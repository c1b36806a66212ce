"""Names of what LiteRT can do without, by which builds switch it off."""

DELEGATE, NODE_FUSION, REUSE = "xnnpack_delegate", "delegate_node_fusion", "memory_reuse"

PASSES = (DELEGATE, NODE_FUSION, REUSE)
"""The delegate that takes nodes over from the kernels; its merging of several nodes into one subgraph; the planner that
lets inner results share memory. The names are this package's, because LiteRT has options without names."""

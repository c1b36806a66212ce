"""ExecuTorch: its XNNPACK delegate and its own kernels against torch in eager mode."""

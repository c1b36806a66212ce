"""Operator specs by family: samplers, intervals, guards, exactness."""

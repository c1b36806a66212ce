"""ORTHRUS: OptBench, and what a resistant twin costs."""

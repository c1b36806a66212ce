"""OPERA: orders of migrated tests, and the baselines that the paper compares them with."""

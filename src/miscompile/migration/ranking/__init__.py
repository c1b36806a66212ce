"""Prioritisation of migrated tests: those that are likely to show diverse bugs come first (OPERA, section III-B)."""

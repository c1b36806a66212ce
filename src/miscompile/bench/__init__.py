"""Benches: the tables of published fuzzers, measured again with this tool."""

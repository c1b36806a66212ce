"""The tables of published fuzzers, measured again with this tool; run from a checkout, because no wheel has them."""

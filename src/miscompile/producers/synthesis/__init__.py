"""Synthesis: patterns put into the inside of seed programs, and the corpus of what came of it."""

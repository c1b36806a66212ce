"""Synthesis (OATest): patterns spliced into seed programs, and the corpus of resulting seeds."""

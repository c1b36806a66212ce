"""The self-mutation score: how many mutants of a sound optimiser each technique, check and comparison rule finds."""

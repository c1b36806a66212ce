"""Fusion motifs: the chains and small templates that optimisers look for, as data, and how they are planted."""

"""Oracles plan runs and judge outcomes; they run nothing."""

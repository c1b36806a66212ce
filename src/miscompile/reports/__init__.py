"""Reports made from stored findings only."""

"""One module for each family of operators; each defines `SPECS`."""

"""HIRFUZZ: diversity of graphs, invalid programs, different failures."""

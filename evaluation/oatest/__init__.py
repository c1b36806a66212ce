"""OATest: synthesis of patterns into seed graphs, and its ablations."""

"""Workers, wire and pools: runs happen here, in other processes."""

"""Control flow: blocks with bodies (If, Loop, Scan), grown with the operators, no-ops and motifs of the main graph."""

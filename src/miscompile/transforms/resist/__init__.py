"""Optimisation resistance: barriers on chosen edges that preserve results and disable optimisations.

After ORTHRUS (Algorithm 1): `config` reads which edges a class of optimisations needs, `matching` finds them,
`barriers` makes the nodes of each barrier, `transform` makes the twin.
"""

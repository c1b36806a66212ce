"""Optimisation resistance: barriers on chosen edges, which keep the meaning and keep optimisations away.

After ORTHRUS (Algorithm 1): `config` reads which edges a class of optimisations needs, `matching` finds them,
`barriers` says how each can be held, `transform` makes the twin.
"""

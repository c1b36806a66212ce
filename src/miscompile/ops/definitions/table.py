"""The operators with a definition of ours."""

from collections.abc import Mapping

from miscompile.ops.definitions import normalisation
from miscompile.ops.definitions.given import Definition

DEFINITIONS: Mapping[str, Definition] = {
    "LRN": normalisation.local_response,
    "LpNormalization": normalisation.lp_normalization,
}

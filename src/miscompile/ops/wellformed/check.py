"""Check of a call against the rules of its operator's page that onnx's checker and inference do not enforce.

Samplers keep these rules; fusion motifs with unusual attributes, and reductions, may break them. A model that breaks
one is invalid, so no result of a compiler on it is a bug. Source of each rule: the operator's page of the ONNX
documentation. A rule holds where it would need elements of an operand that are not known.
"""

from miscompile.ops.spec import Call
from miscompile.ops.wellformed.layer_rules import LAYER_RULES
from miscompile.ops.wellformed.relation_rules import RELATION_RULES
from miscompile.ops.wellformed.shape_rules import SHAPE_RULES

_FLAGS = frozenset({
    "keepdims", "transA", "transB", "ceil_mode", "count_include_pad", "allowzero", "exclusive", "reverse", "largest",
    "sorted", "select_last_index", "fmod", "noop_with_empty_axes", "saturate", "storage_order", "align_corners",
})  # fmt: skip
"""Integer attributes that are boolean: 0 or 1."""

_RULES = {**SHAPE_RULES, **LAYER_RULES, **RELATION_RULES}


def well_formed(call: Call) -> bool:
    """Tell whether `call` keeps the rules of its operator's page; operators without a rule here always do."""
    for name, attribute in call.attributes.items():
        if name in _FLAGS and attribute.value not in (0, 1):
            return False
    rule = _RULES.get(call.op)
    return rule is None or bool(call.domain) or rule(call)

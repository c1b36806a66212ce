"""Small models with everything that wrapping must mind: bodies, captures, left-out operands, functions, chance."""

from miscompile.graph.model import Model
from miscompile.graph.text.parser import parse_model

PLAIN = """ir 8 opset 17 graph g(%x: float32[2,3], %z: float32[2,3]) -> (%e: float32[2,3], %b: float32[2,3]) {
  init %w: float32[2,3] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
  %a = Add(%x, %w) @first
  %b = LeakyRelu(%a) {alpha=0.5}
  %c = Mul(%a, %z)
  %d = LeakyRelu(%c) {alpha=0.25}
  %e = Add(%d, %b)
}"""

TWICE = """ir 8 opset 17 graph g(%x: float32[2,3], %z: float32[2,3]) -> (%y: float32[2,3]) {
  %a = Neg(%x) %b = LeakyRelu(%a) {alpha=0.5} %c = Neg(%z) %d = LeakyRelu(%c) {alpha=0.25} %y = Sub(%b, %d)
}"""

OPTIONAL = """ir 8 opset 17 graph g(%x: float32[2,3]) -> (%y: float32[2,3], %v: float32[2,3], %s: float32[2,1]) {
  init %low: float32[] = [-1.0]
  init %high: float32[] = [1.0]
  init %k: float32[3] = [1.0, 2.0, 0.5]
  %a = Clip(%x, _, %high)
  %b = Clip(%a, %low)
  %y = Clip(%b, %low, %high)
  %v, _, %s = LayerNormalization(%y, %k)
}"""

BODIES = """ir 8 opset 17 graph g(%x: float32[2,3], %c: bool[]) -> (%y: float32[2,3], %s: float32[2,3]) {
  init %w: float32[2,3] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
  init %three: int64[] = [3]
  init %yes: bool[] = [true]
  %a = Neg(%x)
  %b = If(%c) {
    then_branch=graph t() -> (%t2) { init %own: float32[] = [2.0] %t1 = Add(%a, %w) %t2 = Mul(%t1, %own) },
    else_branch=graph e() -> (%e3) {
      %e1 = Relu(%x) %e2 = Sub(%e1, %a)
      %e3 = If(%c) { then_branch=graph tt() -> (%u) { %u = Add(%e2, %x) },
                     else_branch=graph ee() -> (%u) { %u0 = Neg(%e2) %u = Neg(%u0) } }
    }
  }
  %s = Loop(%three, %yes, %b) {
    body=graph l(%i: int64[], %go: bool[], %v: float32[2,3]) -> (%still: bool[], %v2: float32[2,3]) {
      %still = Identity(%go) %v1 = Mul(%v, %w) %v2 = Add(%v1, %a)
    }
  }
  %y = Add(%b, %s)
}"""

NESTED = """ir 9 opset 17 opset l 1 graph g(%x: float32[2,3]) -> (%y: float32[2,3]) {
  %a = l::outer(%x) {alpha=0.5}
  %b = l::outer(%a)
  %y = Neg(%b)
}
function l::outer<alpha=0.25>(%p) -> (%q) {
  opset 17 opset l 1
  %u = l::inner(%p) {slope=@alpha:float}
  %t = LeakyRelu(%u) {alpha=@alpha:float}
  %q = Neg(%t)
}
function l::inner<slope>(%p) -> (%q) { opset 17 %t = LeakyRelu(%p) {alpha=@slope:float} %q = Abs(%t) }"""

TEXTS = {"plain": PLAIN, "twice": TWICE, "optional": OPTIONAL, "bodies": BODIES, "nested": NESTED}


def made(name: str) -> Model:
    """Return the model called `name`."""
    return parse_model(TEXTS[name])

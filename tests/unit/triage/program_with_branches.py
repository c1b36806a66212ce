"""A program with a bug's pattern inside a branch of an If."""

BRANCHES = """ir 10
opset 18

graph g(%c: bool[], %p: float32[2]) -> (%r: float32[2]) {
  init %one: float32[] = [1.0]
  %r = If(%c) {then_branch=graph t() -> (%u: float32[2]) {
    %d = Div(%one, %p)
    %u = Mul(%d, %p)
  }, else_branch=graph e() -> (%w: float32[2]) {
    %w = Neg(%p)
  }}
}
"""

"""Python source as text: the layout of expressions, literals, values of libraries, and whole models."""

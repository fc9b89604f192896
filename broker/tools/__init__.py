"""The tools: one function each; its signature is its schema, its docstring its description."""

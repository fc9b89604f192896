"""@tool: a tool is one function; its signature is its schema, its docstring its description.

1. A tool is registered where it is defined; a second of the same face and name raises at import.
2. Params arrive as JSON text, strictly read; a wrong one is a refusal that names its path.
3. The tool returns its result (a Struct) or a Refusal. It never raises for bad input.
"""

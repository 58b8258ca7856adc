"""The built-in kinds: strategies, tables, and what is served of them."""

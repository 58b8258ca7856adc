"""The kinds of the core group: their defaults, rules and how they print."""

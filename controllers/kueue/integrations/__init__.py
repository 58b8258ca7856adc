"""How Kueue manages jobs of each kind: a generic loop, and one module of pure rules for each kind."""

"""Names that are part of somebody's API: labels, annotations, finalizers, taints, condition types and their reasons, by whose they are.

`kubernetes` (the core and its controllers), `job`, `jobset`, `lws`, `kueue`. Values are upstream's; each has one line on its meaning.
"""

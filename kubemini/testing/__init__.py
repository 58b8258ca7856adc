"""The test kit: invariants of the controllers, checked on every commit of a store."""

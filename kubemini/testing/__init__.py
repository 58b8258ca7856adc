"""The test kit: invariants, a pytest plugin, hypothesis strategies. What kubemini's own tests use is what its users get."""

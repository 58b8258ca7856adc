"""disaggregatedset."""

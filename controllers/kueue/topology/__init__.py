"""Topology-aware scheduling: where in racks and blocks the pods of a Workload go."""

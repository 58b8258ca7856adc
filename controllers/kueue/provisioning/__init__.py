"""Kueue's admission check that asks a cluster autoscaler for room: one ProvisioningRequest for each try of a Workload.

Mirrors Kueue's ``pkg/controller/admissionchecks/provisioning`` (main of August 2026).
"""

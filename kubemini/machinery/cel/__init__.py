"""The Common Expression Language as Kubernetes speaks it: CRD rules, admission policies, match conditions.

`Program` is the face: compile once (cached by text), evaluate often. Behind it stand a parser, a type checker that knows schemas, a cost
estimator and a compiler to Python functions. The language is implemented here because none of the libraries at hand does what the API server
promises: they have no types (``type 'string' does not support field selection``), no cost, no optional values or two-variable macros, and they
copy the whole object into their own values for each evaluation, which for a Workload takes longer than everything else in a write.
"""

from kubemini.machinery.cel.errors import CelCompileError, CelError, CelEvaluationError
from kubemini.machinery.cel.program import Environment, Program

__all__ = ["CelCompileError", "CelError", "CelEvaluationError", "Environment", "Program"]

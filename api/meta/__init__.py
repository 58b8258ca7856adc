"""What the kinds we own are built from: the base model, markers of schema facts, and the shared types of meta/v1.

Import from the submodules: `model` (base classes), `markers` (schema facts that Python types cannot say), `types` (numbers,
quantities, times, references to built-in types), `v1` (ObjectMeta, Condition, LabelSelector).
"""

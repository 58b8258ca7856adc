"""The control loops: one package per controller, pure planning modules under a thin reconciler."""

if __name__ == "controllers":
    raise ImportError(
        "import this package as kubemini.controllers: the folder controllers/ is mapped there, and a second copy of its classes would not compare equal"
    )

"""The kinds: resources, well-known names, schema data and typed views; imports nothing else of kubemini."""

if __name__ == "api":
    raise ImportError(
        "import this package as kubemini.api: the folder api/ is mapped there, and a second copy of its classes would not compare equal"
    )

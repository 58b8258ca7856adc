"""The commands: serve, demo, bench, version."""

from __future__ import annotations

import errno
import sys

from kubemini.cli.quick import without_collections


def main() -> None:
    """Run the command line; wrong use ends with a clear message and status 2, a full disk with 1."""
    with without_collections():
        from kubemini.cli.commands import app
        from kubemini.machinery.errors import ConfigError

    try:
        app()
    except ConfigError as problem:
        print(f"kubemini: error: {problem}", file=sys.stderr)
        sys.exit(2)
    except OSError as problem:
        if problem.errno != errno.ENOSPC:
            raise
        print(f"kubemini: error: {problem.strerror}", file=sys.stderr)
        sys.exit(1)

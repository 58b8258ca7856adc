"""``python -m kubemini``."""

from kubemini.cli import main

main()

"""Rules that every object obeys, as pure functions: no I/O, no clock, no store."""

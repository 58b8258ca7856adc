"""What the built-in kinds look like, as data: fields, merge rules and protobuf numbers of every served version, and plain defaults.

`records` reads the files of ``data/``, one per group and version; `boil` makes them. `defaults` is written by hand.
"""

"""What can go wrong in the store; the server turns each into an API Status."""


class StoreError(Exception):
    """Root of the store's errors."""


class KeyExists(StoreError):
    """A create met a live record; `args[0]` is the key."""


class KeyMissing(StoreError):
    """An update or delete met no record; `args[0]` is the key."""


class RevisionMismatch(StoreError):
    """The record has moved on since the revision that the writer saw."""

    def __init__(self, key: str, expected: int, found: int) -> None:
        super().__init__(f"{key}: expected revision {expected}, found {found}")
        self.key, self.expected, self.found = key, expected, found


class Compacted(StoreError):
    """The revision asked for is older than the history kept; `oldest` is the first one that can still be had."""

    def __init__(self, asked: int, oldest: int) -> None:
        super().__init__(f"revision {asked} is compacted, the oldest kept is {oldest}")
        self.asked, self.oldest = asked, oldest


class FutureRevision(StoreError):
    """The revision asked for has not happened yet."""

    def __init__(self, asked: int, current: int) -> None:
        super().__init__(f"revision {asked} is in the future, the current one is {current}")
        self.asked, self.current = asked, current

"""leaderworkerset."""

"""The kinds of the small groups: coordination, discovery, events, scheduling, node, networking, storage, RBAC, admission, reviews and so on."""

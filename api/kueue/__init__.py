"""Kueue: job queueing. One module or package per served version, and the conversion between them."""

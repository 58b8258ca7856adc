"""The story that ``kubemini demo`` plays: a distributed training run from the queue to success, with a worker that dies on the way."""

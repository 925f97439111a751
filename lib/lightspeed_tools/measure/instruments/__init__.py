"""What is timed, one thing a module: memory, peaks, queues, collectives, a network."""

import signal

# What a shell starts in the background ignores Ctrl+C, and so would every program that a test
# interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

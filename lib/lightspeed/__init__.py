"""Speed of Light: laws and constants of the performance of ML systems. Each law is a pure
function; see `lightspeed.law`.
"""

"""How the course is made: scripts into notebooks, numbers and statements of prose bound to what
they say.
"""

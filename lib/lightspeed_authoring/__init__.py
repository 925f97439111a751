"""How the course is made: scripts into notebooks, numbers and statements bound to what they say."""

"""What runs event by event: pictures move by it, and laws are held to it."""

"""What is simulated, stepped through or fitted, where a law is one formula."""

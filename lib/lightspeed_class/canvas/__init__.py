"""Canvas by its API: roster, submissions and due times from it, grades and feedback to it."""

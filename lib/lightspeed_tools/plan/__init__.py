"""The best way to train a model on a cluster: every plan, held against the law of a step."""

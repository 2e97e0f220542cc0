"""The training data, drawn from a seed; `conversations` is the way in."""

"""Means in the local and the shuffle model, of known domains and unknown ones."""

"""Property tests draw the same examples on every run: a test fails for a reason, not by chance."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None, print_blob=False)
settings.load_profile("fixed")

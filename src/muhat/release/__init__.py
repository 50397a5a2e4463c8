"""What comes out: value, error, interval, certificate, cost; text, HTML, JSON."""

from __future__ import annotations

from muhat.release.certificate import Certificate
from muhat.release.release import Release

__all__ = ["Certificate", "Release"]

"""The public random bytes of a message: they tell it from all others, and nothing of its record."""

from __future__ import annotations

import os

import numpy as np

from muhat._arrays import Bytes

NONCE_BYTES = 16


def fresh_nonces(rows: int) -> Bytes:
    """Nonces for new messages, of shape (rows, 16)."""
    return np.frombuffer(os.urandom(rows * NONCE_BYTES), np.uint8).reshape(rows, NONCE_BYTES)

"""What a record may add to the sums: the shape to hide, and the integers that hide in it.

A body is one block, or a block a part for a product of domains: the blocks have noise of their
own and share the squared sensitivity.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from muhat._arrays import Floats
from muhat.domains import Domain, Preimage
from muhat.domains.blocks import Block
from muhat.domains.vectors import Vector
from muhat.errors import InvalidInput
from muhat.privacy import Neighbors


@dataclass(frozen=True, eq=False)
class Body:
    """A domain, ready to be summed and hidden: `shape` is the set, `blocks` its parts."""

    shape: Domain
    blocks: tuple[Block, ...]
    is_clipped: bool = False
    """Whether records are clipped to a smaller domain than the shape."""

    @classmethod
    def of(
        cls,
        domain: Domain,
        p: float,
        weights: Vector,
        neighbors: Neighbors = Neighbors.SUBSTITUTE,
        clip: Domain | None = None,
    ) -> Body:
        """Records of a domain, measured from a centre, for the error in question.

        With `clip`, a smaller domain about the same centre, records are clipped to that one.
        """
        if clip is None:
            parts = domain.factors()
            return cls(domain, tuple(K.block(p, weights[at], neighbors) for K, at in parts))
        if not domain.is_symmetric:
            raise InvalidInput("clip is for domains that are symmetric about their centre.")
        source = Preimage(clip, None, np.zeros(domain.dim))
        return cls(domain, (domain.mapped_block(p, weights, source),), is_clipped=True)

    @classmethod
    def from_origin(cls, domain: Domain, p: float, weights: Vector) -> Body | None:
        """Records measured from 0, so that K ∪ −K is to be hidden; None if that is not known.

        The shape of a box becomes the smallest box around both sides.
        """
        found = [K.block_from_zero(p, weights[at]) for K, at in domain.factors()]
        blocks = tuple(block for block in found if block is not None)
        return cls(domain.both_sides(), blocks) if len(blocks) == len(found) else None

    @property
    def is_plain(self) -> bool:
        """Whether it is a single block of the domain's own coordinates."""
        return len(self.blocks) == 1 and self.blocks[0].is_plain

    def scaled(self, scales: Floats) -> Body:
        """The same body of a single block with noise in other proportions."""
        (block,) = self.blocks
        return replace(self, blocks=(replace(block, axes=scales),))

    @property
    def center(self) -> Floats:
        """The point that sums are measured from, of shape (d,)."""
        return np.concatenate([block.center for block in self.blocks])

    @property
    def transform(self) -> Floats | None:
        """From the lattices' coordinates to the domain's, as in `Recipe`."""
        parts = [block.transform for block in self.blocks]
        if all(part is None for part in parts):
            return None
        if all(part is None or part.ndim == 1 for part in parts):
            pairs = zip(parts, self.blocks, strict=True)
            return np.concatenate([np.ones(len(b.center)) if t is None else t for t, b in pairs])
        from scipy.linalg import block_diag

        pairs = zip(parts, self.blocks, strict=True)
        return np.asarray(block_diag(*[_dense(t, len(block.center)) for t, block in pairs]))


def _dense(transform: Floats | None, dim: int) -> Floats:
    if transform is None:
        return np.eye(dim)
    return np.diag(transform) if transform.ndim == 1 else transform

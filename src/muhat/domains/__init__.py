"""Where a record may lie. Each domain knows its support function and how to clip to it."""

from __future__ import annotations

from muhat.domains.ball import Ball
from muhat.domains.base import Domain, Preimage
from muhat.domains.box import Box
from muhat.domains.choices import Choices
from muhat.domains.combine import OPERATIONS
from muhat.domains.ellipsoid import Ellipsoid
from muhat.domains.image import Image
from muhat.domains.lp_ball import LpBall
from muhat.domains.moment_tensor import MomentTensor
from muhat.domains.points import Points
from muhat.domains.product import Product
from muhat.domains.reals import Reals
from muhat.domains.schatten_ball import SchattenBall
from muhat.domains.simplex import Simplex
from muhat.domains.sums import MinkowskiSum
from muhat.domains.translate import Translate
from muhat.domains.zonotope import Zonotope

__all__ = [
    "Ball",
    "Box",
    "Choices",
    "Domain",
    "Ellipsoid",
    "Image",
    "LpBall",
    "MinkowskiSum",
    "MomentTensor",
    "Points",
    "Preimage",
    "Product",
    "Reals",
    "SchattenBall",
    "Simplex",
    "Translate",
    "Zonotope",
    "from_dict",
]

Domain.operations = OPERATIONS
from_dict = Domain.from_dict

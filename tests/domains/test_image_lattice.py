"""Images in integers: clipped as the domains clip, inside their ball, record by record."""

from __future__ import annotations

import numpy as np
import pytest

import muhat as mh
from muhat.data import exact_sums, open_source
from muhat.data.engine import record_integers
from muhat.domains.lattice import BallLattice, ImageLattice, LiftClip
from muhat.mechanisms.sums.body import Body
from muhat.records.columns import Batch, Floats

RNG = np.random.default_rng(40)
A = np.array([[4.0, 1.0, 0.01], [1.0, 3.0, -0.01], [0.01, -0.01, 1e-3]])
LEAVES = [
    mh.Box([0, -3, 1000], [1, 5, 1001]),
    mh.Ball(radius=0.7, dim=3, center=[1, -2, 3]),
    mh.Ellipsoid([1e6, 1.0, 1e-6], center=[0, 1, 2]),
    mh.Ellipsoid(A, center=[1, 2, 3]),
    mh.LpBall(p=3, radius=2, dim=3, center=[1, 0, -1], scale=[1, 10, 0.1]),
    mh.SchattenBall(p=1, shape=(1, 3), radius=2),
    mh.Simplex(dim=3),
    mh.Simplex(dim=3, origin=True),
    mh.Simplex(dim=3) + np.array([5.0, -6.0, 0.25]),
    mh.Points(np.random.default_rng(3).normal(size=(20, 3)) * [1, 100, 1e-3] + 7),
    mh.MomentTensor(order=2, dim=3),
    mh.MomentTensor(order=3, dim=3) + np.ones(10),
    mh.Ball(1, 1) * mh.Simplex(2),
]
T = np.array([[1.0, -2.0, 0.5], [0.0, 1.0, 1.0]])
IMAGES = [
    mh.Simplex(3) + mh.Ball(0.5, 3),
    mh.MomentTensor(order=2, dim=2) + mh.Simplex(3),
    T @ mh.MomentTensor(order=2, dim=2),
    T @ (mh.Points([[0.0], [1.0], [5.0]]) * mh.Ball(1, 2)),
    mh.Simplex(2) + T @ mh.Box([0, 0, 0], [1, 2, 3]) + mh.Ellipsoid([[2, 0.5], [0.5, 1]]),
]


def hostile(rows: int, K: mh.Domain) -> np.ndarray:
    """Records inside, on the edge, far out, huge and not there at all."""
    size = np.maximum(np.abs(K.record_center), 1.0)
    x = RNG.normal(size=(rows, K.record_dim)) * RNG.choice([1e-3, 0.5, 1, 3, 1e150], rows)[:, None]
    x = K.record_center + x * size
    odd = [[np.nan], [np.inf], [-np.inf], [1e308], [-1e308], [5e-324], [-0.0], [0], [1], [-1]]
    x[50:60] = odd
    x[60, 0] = np.nan
    return x


def integers(lattice, x, missing="center"):
    return record_integers(lattice, Batch(len(x), matrix=np.ascontiguousarray(x)), missing)


@pytest.mark.parametrize("K", LEAVES, ids=repr)
def test_records_are_clipped_as_the_domain_clips_them(K):
    x = hostile(500, K)
    x[60, 0] = 0.0
    x[50:60] = np.clip(np.nan_to_num(x[50:60]), -1e150, 1e150)
    clips, start, found = K.clips(), 0, []
    with np.errstate(all="ignore"):
        for clip in clips:
            stop = start + clip.record_dim
            found += clip.clip_function()([Floats(column) for column in x[:, start:stop].T.copy()])
            start = stop
    expected = K.clip(x)
    assert np.allclose(
        np.column_stack(found), expected, rtol=1e-12, atol=1e-12 * (1 + abs(expected))
    )


@pytest.mark.parametrize("K", IMAGES, ids=repr)
def test_every_record_lies_in_the_ball(K):
    (block,) = Body.of(K, 2, np.ones(K.dim)).blocks
    assert isinstance(block.lattice, ImageLattice)
    source = K.preimage().domain
    q = integers(block.lattice, hostile(5_000, source)).astype(object)
    assert max((q**2).sum(axis=1)) <= block.lattice.radius**2


@pytest.mark.parametrize("K", IMAGES, ids=repr)
def test_the_integers_stand_for_the_image_of_the_clipped_record(K):
    (block,) = Body.of(K, 2, np.ones(K.dim)).blocks
    source = K.preimage()
    x = RNG.normal(size=(2_000, source.domain.record_dim)) * 2
    y = integers(block.lattice, x).astype(float) * float(block.lattice.grid)
    image = source.domain.clip(x)
    if source.matrix is not None:
        image = image @ source.matrix.T + source.offset
    assert np.allclose(block.center + y @ block.transform.T, image, atol=1e-9)


@pytest.mark.parametrize("K", IMAGES, ids=repr)
def test_a_record_does_not_depend_on_the_others(K):
    (block,) = Body.of(K, 2, np.ones(K.dim)).blocks
    x = hostile(300, K.preimage().domain)
    together = integers(block.lattice, x)
    for start, stop in ((0, 1), (7, 8), (50, 60), (100, 299)):
        assert (integers(block.lattice, x[start:stop]) == together[start:stop]).all()


@pytest.mark.parametrize("K", IMAGES[:2], ids=repr)
def test_incomplete_records_are_dropped_on_request(K):
    (block,) = Body.of(K, 2, np.ones(K.dim)).blocks
    x = RNG.normal(size=(5, block.lattice.record_dim))
    x[1, 0] = np.nan
    x[3, -1] = np.inf
    dropped = exact_sums(open_source(x, None, x.shape[1]), block.lattice, missing="drop")
    assert dropped == exact_sums(open_source(x[[0, 2, 4]], None, x.shape[1]), block.lattice)
    assert not integers(block.lattice, x, "drop")[[1, 3]].any()


def test_a_ragged_line_counts_like_a_line_of_missing_values(tmp_path):
    K = T @ mh.MomentTensor(order=2, dim=2)
    (block,) = Body.of(K, 2, np.ones(2)).blocks
    (tmp_path / "ragged.csv").write_text("a,b\n0.5,0.5\n1\n0.1,0.2\n")
    (tmp_path / "missing.csv").write_text("a,b\n0.5,0.5\n,\n0.1,0.2\n")
    sums = [
        exact_sums(open_source(tmp_path / name, None, 2), block.lattice)
        for name in ("ragged.csv", "missing.csv")
    ]
    assert sums[0] == sums[1]
    assert sums[0].rows == 3


def test_a_lattice_whose_parts_do_not_fit_is_refused():
    with pytest.raises(mh.InvalidInput, match="as many"):
        ImageLattice((LiftClip(2, 3),), BallLattice.around([0.0] * 5, 1.0))


@pytest.mark.parametrize("wrong", [0.0, 1e300, np.inf, np.nan])
def test_a_clip_that_is_wrong_cannot_push_a_record_out(wrong, monkeypatch):
    """Privacy rests on the integer check alone."""
    monkeypatch.setattr(
        "muhat.domains.moment_basis.TensorBasis.lift_columns",
        lambda basis, inside: [np.full(len(inside[0]), wrong)] * 3,
    )
    (block,) = Body.of(T @ mh.MomentTensor(order=2, dim=2), 2, np.ones(2)).blocks
    q = integers(block.lattice, RNG.normal(size=(500, 2))).astype(object)
    assert max((q**2).sum(axis=1)) <= block.lattice.radius**2

"""Neighbours have the same set of possible releases, and a release is a function of a lattice.

The answer v of the exact query is an integer vector and so is the noise z. If every release is
a function of v + z alone, then whatever can come out of a dataset with some z can come out of
its neighbour with z + v − v', and nothing else about the data is in it, down to the last bit.
"""

from __future__ import annotations

import ast
import inspect
import pickle
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hostile import BALL, BOX, DOMAINS, ELLIPSOID, noise_is

import muhat as mh
from muhat.data import exact_sums, open_source
from muhat.noise import rounded_normal

SOURCE = Path(mh.__file__).parent
PRIVACY = {"zcdp": mh.ZCDP(rho=0.3), "pure": mh.PureDP(epsilon=0.7)}
ROWS = np.array([[1.0, 2.0], [3.5, -0.5], [7.0, 4.0], [0.1, 0.3]])


def neighbours(plan):
    far = np.array([[np.nan, 1e308]])
    if plan.n is not None:
        return ROWS, np.vstack([ROWS[:-1], far])
    return ROWS, np.vstack([ROWS, far])


def answer(plan, rows):
    source = open_source(rows, dim=plan.dim)
    found = exact_sums(source, plan.recipe.query.lattice)
    return plan.recipe.query.answer(found.total, found.rows)


def noise_of(monkeypatch, integers):
    noise_is(monkeypatch, lambda dim: np.array(integers, object))


def plans():
    for domain in DOMAINS.values():
        for privacy in PRIVACY.values():
            for n in (4, None):
                yield mh.plan_mean(domain=domain, n=n, privacy=privacy)
                yield mh.plan_sum(domain=domain, n=n, privacy=privacy)
    for mechanism in ("laplace", "box-norm", "ellipsoid-norm", "plain-laplace"):
        yield mh.plan_mean(domain=BOX, n=4, privacy=PRIVACY["pure"], mechanism=mechanism)
    yield mh.plan_mean(domain=BALL, n=4, privacy=PRIVACY["pure"], mechanism="plain-laplace")
    for privacy in PRIVACY.values():
        for n in (4, None):
            for planner in (mh.plan_mean, mh.plan_sum):
                yield planner(domain=BOX, n=n, privacy=privacy, missing="drop")


@pytest.mark.parametrize("plan", list(plans()), ids=lambda p: f"{p.statistic}-{p.mechanism}")
def test_what_comes_out_of_one_dataset_comes_out_of_its_neighbour_bit_for_bit(monkeypatch, plan):
    one, other = neighbours(plan)
    v, w = answer(plan, one), answer(plan, other)
    assert v != w
    for _ in range(5):
        z = [int(x) for x in rounded_normal(len(v))]
        noise_of(monkeypatch, z)
        first = plan.release(one).to_json()
        noise_of(monkeypatch, [x + a - b for x, a, b in zip(z, v, w, strict=True)])
        assert plan.release(other).to_json() == first
        monkeypatch.undo()


def test_a_mechanism_that_adds_noise_to_floats_would_be_caught(monkeypatch):
    plan = mh.plan_mean(domain=BOX, n=4, privacy=PRIVACY["zcdp"], population=False)
    one, other = neighbours(plan)
    exact = {id(one): one[:, 0].clip(0, 8).mean(), id(other): np.nan_to_num(other[:, 0]).mean()}
    values = {exact[id(rows)] + 1e-3 * shift for rows in (one, other) for shift in (0, 1)}
    unit = plan.recipe.query.units()[0] / 4
    lattice = plan.recipe.query.lattice
    center = lattice.center_units[0] * lattice.grid[0]
    assert any((Fraction(value) - center) / unit % 1 for value in values)


@pytest.mark.parametrize("plan", list(plans()), ids=lambda p: f"{p.statistic}-{p.mechanism}")
def test_noisy_sums_lie_on_the_public_lattice(plan):
    units = plan.recipe.query.units()
    for rows in neighbours(plan):
        found = exact_sums(
            open_source(rows, dim=2), plan.recipe.query.lattice, missing=plan.missing
        )
        for _ in range(20):
            noisy = plan.recipe.run(found.total, found.rows)
            steps = [x / unit for x, unit in zip(noisy, units, strict=True)]
            assert all(step.denominator == 1 for step in released_rows(plan, steps))


def released_rows(plan, steps):
    """The integers with their noise, of which sums and counts are read off."""
    query = plan.recipe.query
    if not getattr(query, "turned", False):
        return steps
    d = query.sum_rows
    pairs = list(zip(steps[:d], steps[-d:], strict=True))
    return [n + s for s, n in pairs] + steps[d:-d] + [n - s for s, n in pairs]


def test_a_count_is_a_function_of_the_lattice_too(monkeypatch):
    for privacy in PRIVACY.values():
        plan = mh.plan_count(privacy=privacy)
        (v,), (w,) = plan.recipe.query.answer((), 4), plan.recipe.query.answer((), 5)
        noise_of(monkeypatch, [12345])
        first = plan.release(ROWS).to_json()
        noise_of(monkeypatch, [12345 + v - w])
        assert plan.release(np.vstack([ROWS, ROWS[:1]])).to_json() == first


def test_no_float_generator_and_no_code_loader_is_used_anywhere():
    """Studies draw their data and idealised baselines from numpy; nothing of theirs is released.

    What a driver sends its own workers is unpickled there, as by the cluster itself.
    """
    workers = {SOURCE / "data" / name for name in ("spark_worker.py", "dask.py")}
    for path in SOURCE.rglob("*.py"):
        if path.is_relative_to(SOURCE / "studies"):
            continue
        banned = {"random", "pickle", "marshal", "shelve", "numpy.random", "secrets"}
        banned -= {"pickle"} if path in workers else set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert not banned & {name.name for name in node.names}, path
            if isinstance(node, ast.ImportFrom):
                assert node.module not in banned, path
            if isinstance(node, ast.Attribute) and node.attr == "random":
                raise AssertionError(path)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in {"eval", "exec", "compile", "__import__"}, path


def test_no_public_call_takes_a_seed_or_a_generator():
    for name in mh.__all__:
        thing = getattr(mh, name)
        if callable(thing) and not (inspect.isclass(thing) and issubclass(thing, Exception)):
            parameters = set(inspect.signature(thing).parameters)
            assert not parameters & {"seed", "rng", "random_state", "generator", "entropy"}, name


def test_no_state_of_a_generator_is_in_what_can_be_stored():
    for plan in plans():
        text = pickle.dumps(plan) + pickle.dumps(plan.release(ROWS)) + repr(plan).encode()
        for word in (b"Generator", b"BitGen", b"RandomState", b"urandom", b"getstate"):
            assert word not in text


@pytest.mark.parametrize("domain", [BOX, BALL, ELLIPSOID])
def test_full_corners_never_overflow(monkeypatch, domain):
    noise_of(monkeypatch, [0] * (2 if domain is ELLIPSOID else 4))
    corner = np.array([[1e300, 1e300]])
    rows = np.repeat(corner, 300_000, axis=0)
    release = mh.mean(rows, domain=domain, privacy=mh.ZCDP(rho=1))
    one = mh.mean(corner, domain=domain, privacy=mh.ZCDP(rho=1))
    assert np.allclose(release.value, one.value, rtol=0, atol=1e-9)


def test_integers_beyond_floats_are_summed_without_wrapping(monkeypatch):
    noise_of(monkeypatch, [0])
    top = 2**64 - 1
    options = {"privacy": mh.ZCDP(rho=1), "population": False}
    values = np.full(200_000, top, np.uint64)
    release = mh.mean(values, domain=mh.Box([top - 1000], [top]), **options)
    assert release.value[0] == float(top)
    below = mh.mean(values - np.uint64(500), domain=mh.Box([0], [top]), **options)
    assert abs(below.value[0] - (top - 500)) <= 2**64 * 2.0**-44

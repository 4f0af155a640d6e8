"""Distributions of tuff.Generator against those of scipy.stats, with fixed seeds. Without SciPy these tests are skipped."""

import numpy as np
import pytest
import tuff

stats = pytest.importorskip("scipy.stats")
special = pytest.importorskip("scipy.special")

N = 100_000

#: The Kolmogorov-Smirnov distance of N numbers exceeds this with a probability below 2 exp(-2 * 2.8^2) = 3.1e-7 (Massart 1990).
#: Numbers of f32 add what a distribution function changes within their rounding, which is below 1e-5 in these tests.
FAR = 2.8 / np.sqrt(N) + 1e-5


def _drawn(ctx, name, parameters):
    """Numbers of the method that the name of a row begins with."""
    return getattr(tuff.Generator(ctx, 20261126), name.split(" ")[0])(*parameters, size=N)


def _distance(x, cumulative):
    x = np.sort(x.astype(np.float64))
    f = cumulative(x)
    steps = np.arange(len(x) + 1) / len(x)
    return max(np.abs(f - steps[1:]).max(), np.abs(f - steps[:-1]).max())


def _chi_squared(counts, expected):
    """Pearson's statistic and a bound that it exceeds with a probability of at most exp(-14) < 1e-6 (Laurent and Massart 2000,
    lemma 1). Cells of fewer than 20 expected counts are merged into one."""
    few = expected < 20
    if few.any():
        counts, expected = (np.append(one[~few], one[few].sum()) for one in (counts, expected))
        if expected[-1] < 20:  # beside the most probable cell
            at = expected.argmax()
            counts[at] += counts[-1]
            expected[at] += expected[-1]
            counts, expected = counts[:-1], expected[:-1]
    freedom = len(expected) - 1
    return ((counts - expected) ** 2 / expected).sum(), freedom + 2 * np.sqrt(14 * freedom) + 28


def _agrees_with(x, distribution):
    """Whether integers follow a distribution of scipy.stats."""
    least, most = int(distribution.ppf(1e-9)), int(distribution.ppf(1 - 1e-9))
    if most - least > 400:  # cells of equal probability
        edges = np.unique(distribution.ppf(np.linspace(0, 1, 101)[1:-1]))
        expected = np.diff(np.concatenate([[0], distribution.cdf(edges), [1]])) * x.size
        counts = np.bincount(np.searchsorted(edges, x), minlength=len(edges) + 1)
    else:
        cells = np.arange(least, most + 1)
        expected = np.append(distribution.pmf(cells), 0) * x.size
        expected[-1] = max(x.size - expected.sum(), 0)
        counts = np.array([(x == one).sum() for one in cells] + [((x < least) | (x > most)).sum()])
    return _chi_squared(counts.astype(float), expected)


class _Zipf(type(stats.zipf)):
    """SciPy's distribution with its function in closed form, by Hurwitz's zeta function: SciPy adds up millions of terms."""

    def _cdf(self, k, a):
        return 1 - special.zeta(a, np.floor(k) + 1) / special.zeta(a, 1)


zipf = _Zipf(a=1, name="zipf")

CONTINUOUS = {
    "standard_exponential": ((), stats.expon()),
    "lognormal": ((0.5, 0.75), stats.lognorm(0.75, scale=np.exp(0.5))),
    "laplace": ((-1.0, 2.5), stats.laplace(-1, 2.5)),
    "logistic": ((3.0, 0.5), stats.logistic(3, 0.5)),
    "gumbel": ((-2.0, 3.0), stats.gumbel_r(-2, 3)),
    "rayleigh": ((2.0,), stats.rayleigh(scale=2)),
    "weibull": ((0.7,), stats.weibull_min(0.7)),
    "weibull of a large shape": ((80.0,), stats.weibull_min(80)),
    "pareto": ((3.0,), stats.lomax(3)),
    "pareto of a small shape": ((0.4,), stats.lomax(0.4)),
    "power": ((0.3,), stats.powerlaw(0.3)),
    "power of a large shape": ((5.0,), stats.powerlaw(5)),
    "standard_cauchy": ((), stats.cauchy()),
    "triangular": ((-1.0, 0.5, 4.0), stats.triang(0.3, -1, 5)),
    "triangular without a left side": ((2.0, 2.0, 3.0), stats.triang(0, 2, 1)),
    "wald": ((2.0, 3.0), stats.invgauss(2 / 3, scale=3)),
    "wald of a small scale": ((50.0, 0.5), stats.invgauss(100, scale=0.5)),
    "uniform": ((np.float32(-1), [3.0]), stats.uniform(-1, 4)),
    "normal": ((1.5, [2.0]), stats.norm(1.5, 2)),
    "exponential": (([2.5],), stats.expon(scale=2.5)),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_numbers_follow_their_distribution(ctx, name):
    parameters, distribution = CONTINUOUS[name]
    x = _drawn(ctx, name, parameters)
    assert x.shape == (N,) and x.dtype == np.float32
    assert _distance(x.numpy(), distribution.cdf) < FAR


INTEGERS = {
    "geometric": ((0.3,), stats.geom(0.3)),
    "geometric of a small p": ((2e-4,), stats.geom(2e-4)),
    "logseries": ((0.6,), stats.logser(0.6)),
    "logseries of a large p": ((0.99,), stats.logser(0.99)),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_follow_their_distribution(ctx, name):
    parameters, distribution = INTEGERS[name]
    x = _drawn(ctx, name, parameters)
    assert x.shape == (N,) and x.dtype == np.int64
    statistic, most = _agrees_with(x.numpy(), distribution)
    assert statistic < most


def test_parameters_broadcast(ctx):
    rng = tuff.Generator(ctx, 3)
    loc = np.array([[0.0], [100.0]])
    on_device = ctx.array(np.array([1.0, 2.0, 3.0]))
    for name in ("laplace", "logistic", "gumbel", "normal"):
        x = getattr(rng, name)(loc, on_device).numpy()
        assert x.shape == (2, 3) and (np.abs(x[0]) < 70).all() and (np.abs(x[1] - 100) < 70).all()
        assert getattr(rng, name)(loc, on_device, (4, 2, 3)).shape == (4, 2, 3)
        with pytest.raises(ValueError, match="size is 3, and the parameters have the shape"):
            getattr(rng, name)(loc, on_device, 3)
    each = rng.exponential(ctx.array(np.array([1, 1000])), (N, 2)).numpy()
    assert np.allclose(each.mean(0), [1, 1000], rtol=5 / np.sqrt(N))
    assert rng.geometric([1.0, 1.0]).numpy().tolist() == [1, 1]
    assert rng.lognormal().shape == rng.rayleigh().shape == rng.standard_cauchy().shape == ()
    assert rng.weibull(2.0, (0, 3)).shape == (0, 3)
    out = ctx.zeros((2, 3))
    assert rng.normal(loc, on_device, out=out) is out and (np.abs(out.numpy()[1]) > 50).all()
    assert rng.uniform([5.0], 5.0, 3).numpy().tolist() == [5, 5, 5]


def test_ends_of_parameters(ctx):
    rng = tuff.Generator(ctx, 4)
    for name in ("laplace", "logistic", "gumbel"):
        assert (getattr(rng, name)(3.0, 0.0, 9).numpy() == 3).all()
    assert (rng.weibull(0.0, 9).numpy() == 0).all() and (rng.rayleigh(0.0, 9).numpy() == 0).all()
    assert (rng.logseries(0.0, 9).numpy() == 1).all()
    assert (rng.geometric(1.0, 9).numpy() == 1).all()
    big = rng.geometric(1e-9, 1000).numpy()
    assert abs(big.mean() * 1e-9 - 1) < 5 / np.sqrt(1000)
    # Of arrays on a device, numbers out of range give NaN where a formula does, and nothing raises.
    assert np.isnan(rng.lognormal(ctx.array(np.array([np.nan, 0.0]))).numpy()).tolist() == [True, False]
    assert np.isnan(rng.wald(ctx.array(np.array([np.nan])), 1.0).numpy()).all()


def test_wrong_parameters_say_so_and_draw_nothing(ctx):
    rng = tuff.Generator(ctx, 5)
    nan = float("nan")
    for call, words in (
        (lambda: rng.laplace(0, -1), "scale is -1, needs numbers that are not negative"),
        (lambda: rng.laplace(nan, 1), "loc is nan"),
        (lambda: rng.pareto(0), "a is 0, needs numbers above 0"),
        (lambda: rng.power([1, -1]), r"a is \[1, -1\]"),
        (lambda: rng.wald(1, nan), "scale is nan"),
        (lambda: rng.geometric(0), "p is 0, needs numbers above 0, at most 1"),
        (lambda: rng.logseries(1), "p is 1, needs numbers from 0, below 1"),
        (lambda: rng.triangular(3, 2, 1), "left is 3.0, mode is 2.0, right is 1.0: needs left <= mode <= right"),
        (lambda: rng.normal(0, [-1]), "scale is"),
        (lambda: rng.standard_exponential(3, method="no"), "method is 'no'"),
        (lambda: rng.multivariate_normal([0, 0], np.eye(3)), r"mean has shape \(2,\) and cov \(3, 3\)"),
        (lambda: rng.multivariate_normal([0, 0], np.eye(2), method="qr"), "method is 'qr'"),
        (lambda: rng.multivariate_normal([0, 0], -np.eye(2), check_valid="raise"), "cov is not symmetric"),
        (lambda: rng.bytes(-1), "length is -1"),
        (lambda: rng.spawn(-1), "n_children is -1"),
        (lambda: rng.weibull(1, size=-1), "size"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    for call, words in (
        (lambda: rng.laplace("x"), "loc is of"),
        (lambda: rng.laplace(1j), "loc is of complex128"),
        (lambda: rng.rayleigh(ctx.array(np.array([1j]))), "scale is of complex64"),
        (lambda: rng.bytes(1.5), "length"),
    ):
        with pytest.raises(TypeError, match=words):
            call()
    with tuff.Context(backend="host") as other, pytest.raises(ValueError, match="of another context"):
        rng.rayleigh(other.array(np.ones(3)))
    assert rng.offset == 0


@pytest.mark.parametrize("method", ["svd", "cholesky"])
def test_multivariate_normal(ctx, method):
    mean, cov = np.array([1.0, -2.0, 0.5]), np.array([[2.0, 0.6, 0.0], [0.6, 1.0, -0.3], [0.0, -0.3, 0.5]])
    rng = tuff.Generator(ctx, 6)
    x = rng.multivariate_normal(mean, cov, N, method=method)
    assert x.shape == (N, 3) and rng.multivariate_normal(mean, cov).shape == (3,)
    assert rng.multivariate_normal(ctx.array(mean), ctx.array(cov), (2, 0)).shape == (2, 0, 3)
    # Whitened by a factor of NumPy's: each component is standard normal, and products of two have mean 0 and variance 1.
    z = np.linalg.solve(np.linalg.cholesky(cov), (x.numpy() - mean).T)
    for one in z:
        assert _distance(one, stats.norm.cdf) < FAR
    assert np.abs(z @ z.T / N - np.eye(3)).max() < 5 * np.sqrt(2) / np.sqrt(N) + 1e-5
    if method == "svd":
        singular = rng.multivariate_normal([0, 0], [[1, 1], [1, 1]], 50).numpy()
        assert np.allclose(singular[:, 0], singular[:, 1], atol=1e-3)  # the square root of f32's unit, times |z| < 6.8
        with pytest.warns(RuntimeWarning, match="cov is not symmetric"):
            rng.multivariate_normal([0, 0], [[1, 2], [2, 1]])


def test_bytes_and_children(ctx):
    rng = tuff.Generator(ctx, 7)
    data = rng.bytes(N)
    assert isinstance(data, bytes) and len(data) == N and rng.bytes(0) == b""
    statistic, most = _chi_squared(np.bincount(np.frombuffer(data, np.uint8), minlength=256).astype(float), np.full(256, N / 256))
    assert statistic < most
    children = rng.spawn(2) + rng.spawn(1)
    again = tuff.Generator(ctx, 7).spawn(3)
    seeds = [(one.seed, one.sequence) for one in children]
    assert len(set(seeds)) == 3 and seeds == [(one.seed, one.sequence) for one in again]
    assert seeds != [(one.seed, one.sequence) for one in tuff.Generator(ctx, 7, sequence=1).spawn(3)]
    both = np.stack([one.standard_normal(N).numpy() for one in children[:2]])
    assert abs((both[0] * both[1]).mean()) < 5 / np.sqrt(N)


VARIATES = {
    "standard_gamma": ((0.5,), stats.gamma(0.5)),
    "standard_gamma of a large shape": ((1e6,), stats.gamma(1e6)),
    "gamma": ((2.5, 3.0), stats.gamma(2.5, scale=3)),
    "gamma of shape 1": ((1.0, 2.0), stats.expon(scale=2)),
    "chisquare": ((3.0,), stats.chi2(3)),
    "f": ((5.0, 7.0), stats.f(5, 7)),
    "standard_t": ((3.0,), stats.t(3)),
    "noncentral_chisquare": ((3.0, 4.0), stats.ncx2(3, 4)),
    "noncentral_f": ((5.0, 7.0, 3.0), stats.ncf(5, 7, 3)),
    "beta": ((2.0, 5.0), stats.beta(2, 5)),
    "beta of small parameters": ((0.3, 0.05), stats.beta(0.3, 0.05)),
    "beta of unlike parameters": ((0.5, 40.0), stats.beta(0.5, 40)),
    "vonmises": ((0.0, 4.0), stats.vonmises(4)),
    "vonmises of a small kappa": ((0.0, 0.01), stats.vonmises(0.01)),
    "vonmises of a large kappa": ((0.0, 1e8), stats.norm(0, 1e-4)),
}


@pytest.mark.parametrize("name", VARIATES)
def test_variates_follow_their_distribution(ctx, name):
    parameters, distribution = VARIATES[name]
    x = _drawn(ctx, name, parameters)
    assert x.shape == (N,) and x.dtype == np.float32
    # Of a beta number near 1, f32 keeps few digits of what is left: those are compared as they are rounded.
    near = 0.01 if name == "beta of small parameters" else 0.0
    x = x.numpy()
    assert _distance(np.where(x > 1 - 1e-6, 1.0, x) if near else x, distribution.cdf) < FAR + (
        distribution.sf(1 - 1e-6) if near else 0
    )


COUNTS = {
    "poisson": ((0.7,), stats.poisson(0.7)),
    "poisson below 10": ((9.99,), stats.poisson(9.99)),
    "poisson of 10": ((10.0,), stats.poisson(10)),
    "poisson of many": ((1e9,), stats.poisson(1e9)),
    "binomial": ((20, 0.3), stats.binom(20, float(np.float32(0.3)))),
    "binomial of a large p": ((60, 0.75), stats.binom(60, 0.75)),
    "binomial of a small p": ((10**6, 2.0**-20), stats.binom(10**6, 2.0**-20)),
    "binomial of many": ((2**31 - 1, 0.5), stats.binom(2**31 - 1, 0.5)),
    "negative_binomial": ((2.5, 0.25), stats.nbinom(2.5, 0.25)),
    "hypergeometric": ((15, 25, 8), stats.hypergeom(40, 15, 8)),
    "hypergeometric by ratios": ((300, 100, 250), stats.hypergeom(400, 300, 250)),
    "hypergeometric of few": ((11, 10**5, 50), stats.hypergeom(100011, 11, 50)),
    "hypergeometric of few good ones": ((5, 1000, 300), stats.hypergeom(1005, 5, 300)),
    "zipf": ((2.5,), zipf(2.5)),
    "zipf of a large a": ((9.0,), zipf(9)),
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts_follow_their_distribution(ctx, name):
    parameters, distribution = COUNTS[name]
    x = _drawn(ctx, name, parameters)
    assert x.shape == (N,) and x.dtype == np.int64
    statistic, most = _agrees_with(x.numpy(), distribution)
    assert statistic < most


def test_a_small_shape_keeps_its_logarithm(ctx):
    # Gamma numbers of shape 1e-3 are mostly below the smallest f32. P(ln x < t) is exp(shape t) / gamma(shape + 1) there.
    rng = tuff.Generator(ctx, 3)
    x = rng.beta(1e-3, 1e-3, N).numpy()
    assert np.isfinite(x).all() and abs((x > 0.5).mean() - 0.5) < 2.5 / np.sqrt(N) and ((x < 1e-6) | (x > 1 - 1e-6)).mean() > 0.9
    x = rng.dirichlet([1e-3, 1e-3, 1e-3], N).numpy()
    assert np.allclose(x.sum(1), 1, atol=1e-6) and np.abs(x.mean(0) - 1 / 3).max() < 5 * 0.5 / np.sqrt(N)


def test_variates_are_the_same_on_both_backends():
    draws = []
    for backend in ("host", "vulkan") if tuff.device_count() else ("host",):
        with tuff.Context(backend=backend) as ctx:
            rng = tuff.Generator(ctx, 7)
            draws.append([
                rng.standard_gamma([0.3, 1.0, 40.0], (500, 3)).numpy(),
                rng.poisson(ctx.array(np.linspace(0, 40, 1000))).numpy(),
                rng.binomial([3, 100, 10**9], 0.4, (500, 3)).numpy(),
                rng.hypergeometric(100, [50, 5000], 60, (500, 2)).numpy(),
                rng.zipf([1.5, 4.0], (500, 2)).numpy(),
                rng.multivariate_hypergeometric([10, 20, 30], 25, 300).numpy(),
            ])  # fmt: skip
    for other in draws[1:]:
        for a, b in zip(draws[0], other):
            assert a.tobytes() == b.tobytes()


def test_parameters_of_variates(ctx):
    rng = tuff.Generator(ctx, 8)
    assert rng.poisson().shape == () and rng.poisson(3.0, (2, 0)).shape == (2, 0)
    lam = ctx.array(np.array([0.0, np.nan, -1.0, 3e9, 1000.0]))
    x = rng.poisson(lam, (9, 5)).numpy()
    assert (x[:, 0] == 0).all() and (x[:, 1:4] == -1).all() and (x[:, 4] > 700).all()
    assert np.isnan(rng.standard_gamma(ctx.array(np.array([-1.0])), 3).numpy()).all()
    assert (rng.standard_gamma(0.0, 3).numpy() == 0).all() and (rng.gamma(2.0, 0.0, 3).numpy() == 0).all()
    x = rng.binomial(ctx.array(np.array([[5], [2**31 - 1]])), [0.0, 1.0]).numpy()
    assert x.tolist() == [[0, 5], [0, 2**31 - 1]]
    x = rng.beta(ctx.array(np.array([0.5, 100.0])), 2.0, (N // 10, 2)).numpy()
    assert np.allclose(x.mean(0), [0.2, 100 / 102], atol=5 * 0.3 / np.sqrt(N / 10))
    x = rng.vonmises([3.0, -3.0], 1e4, (100, 2)).numpy()
    assert (np.abs(x) <= np.float32(np.pi)).all() and np.abs(np.cos(x - [3.0, -3.0]) - 1).max() < 1e-2
    out = ctx.zeros((3, 5))
    assert rng.standard_gamma(5.0, out=out) is out and (out.numpy() > 0).all()
    rng.standard_gamma(5.0, out=out[:, ::2].T)
    x = rng.multivariate_hypergeometric(np.array([3, 0, 7]), 10, (2, 2)).numpy()
    assert (x == [3, 0, 7]).all() and x.shape == (2, 2, 3)
    x = rng.multivariate_hypergeometric([10, 20, 70], 30, N, "count").numpy()
    assert (x.sum(1) == 30).all() and np.abs(x.mean(0) - [3, 6, 21]).max() < 5 * 2.1 / np.sqrt(N)


def test_wrong_parameters_of_variates_say_so_and_draw_nothing(ctx):
    rng = tuff.Generator(ctx, 9)
    for call, words in (
        (lambda: rng.gamma(-1), "shape is -1, needs numbers that are not negative"),
        (lambda: rng.gamma(1, float("nan")), "scale is nan"),
        (lambda: rng.chisquare(0), "df is 0"),
        (lambda: rng.beta(1, [1, 0]), r"b is \[1, 0\]"),
        (lambda: rng.dirichlet([]), r"alpha has the shape \(0,\)"),
        (lambda: rng.dirichlet(3.0), r"alpha has the shape \(\)"),
        (lambda: rng.poisson(2**31), r"lam is 2147483648, needs numbers from 0 to 2\^31 - 2\^20"),
        (lambda: rng.binomial(2**31, 0.5), r"n is 2147483648, needs integers from 0 to 2\^31 - 1"),
        (lambda: rng.binomial(2.5, 0.5), "n is 2.5"),
        (lambda: rng.binomial(3, 1.5), "p is 1.5"),
        (lambda: rng.hypergeometric(3, 4, 8), "ngood is 3.0, nbad is 4.0, nsample is 8.0"),
        (lambda: rng.multivariate_hypergeometric([3, 4], 8), "nsample is 8, needs at most 7"),
        (lambda: rng.multivariate_hypergeometric([], 0), "colors"),
        (lambda: rng.multivariate_hypergeometric([1], 1, method="no"), "method is 'no'"),
        (lambda: rng.zipf(1), "a is 1, needs numbers above 1"),
        (lambda: rng.negative_binomial(0, 0.5), "n is 0"),
        (lambda: rng.vonmises(0, -1), "kappa is -1"),
        (lambda: rng.standard_gamma(1, 3, out=ctx.zeros(4)), r"out has shape \(4,\)"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    assert rng.offset == 0
    ahead = tuff.Generator(ctx, 9, offset=2**56)
    with pytest.raises(tuff.TuffError, match="offset is 72057594037927936"):
        ahead.poisson(3.0, 5)

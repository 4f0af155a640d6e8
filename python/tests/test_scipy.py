"""SciPy's functions with array API dispatch (SCIPY_ARRAY_API=1) on arrays of a device, beside the same in NumPy."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import sys
import numpy as np, scipy.special as special, scipy.stats as stats, tuff
from scipy.cluster import vq

rng = np.random.default_rng(0)
x = rng.uniform(0.5, 4, (60, 4)).astype(np.float32)
y = (x[::-1] + 0.3 * rng.uniform(0, 1, (60, 4))).astype(np.float32)
p = rng.uniform(0.05, 0.95, (60, 4)).astype(np.float32)
calls = {
    "expit": lambda x, y, p: special.expit(x),
    "ndtri": lambda x, y, p: special.ndtri(p),
    "i0e": lambda x, y, p: special.i0e(x),
    "betainc": lambda x, y, p: special.betainc(x, y, p),
    "gammainc": lambda x, y, p: special.gammainc(x, p),
    "rel_entr": lambda x, y, p: special.rel_entr(x, p),
    "logsumexp": lambda x, y, p: special.logsumexp(x, axis=1),
    "log_softmax": lambda x, y, p: special.log_softmax(x, axis=1),
    "describe": lambda x, y, p: stats.describe(x),
    "gmean": lambda x, y, p: stats.gmean(x),
    "kurtosis": lambda x, y, p: stats.kurtosis(x),
    "zscore": lambda x, y, p: stats.zscore(x),
    "trimmed": lambda x, y, p: stats.tvar(x, (0.7, 3.5)),
    "iqr": lambda x, y, p: stats.iqr(x, axis=0),
    "rank": lambda x, y, p: stats.rankdata(x, axis=0),
    "entropy": lambda x, y, p: stats.entropy(x, y),
    "t test": lambda x, y, p: stats.ttest_ind(x, y, equal_var=False),
    "pearson": lambda x, y, p: [stats.pearsonr(x, y, axis=0).statistic, stats.pearsonr(x, y, axis=0).pvalue],
    "wilcoxon": lambda x, y, p: stats.wilcoxon(x, y),
    "mann and whitney": lambda x, y, p: stats.mannwhitneyu(x, y),
    "kruskal": lambda x, y, p: stats.kruskal(x, y),
    "cramer and mises": lambda x, y, p: [stats.cramervonmises(x[:, 0], special.ndtr).statistic],
    "normal": lambda x, y, p: stats.normaltest(x),
    "chi square": lambda x, y, p: stats.chisquare(x),
    "directions": lambda x, y, p: [stats.directional_stats(x).mean_direction],
    "bootstrap": lambda x, y, p: [stats.bootstrap((x[:, 0],), mean, n_resamples=9, rng=np.random.default_rng(1)).standard_error],
    "whiten": lambda x, y, p: vq.whiten(x),
    "codes": lambda x, y, p: vq.vq(x, x[:3, :]),
    "k-means": lambda x, y, p: vq.kmeans2(x, x[:3, :], minit="matrix"),
}


def mean(sample, axis):
    return sample.__array_namespace__().mean(sample, axis=axis)


def parts(result):
    if isinstance(result, (tuple, list)):
        return [part for one in result for part in parts(one)]
    return [result]


with tuff.Context(backend=sys.argv[1]) as ctx:
    tuff._default._default = ctx
    for name, call in calls.items():
        got, wanted = parts(call(ctx.array(x), ctx.array(y), ctx.array(p))), parts(call(x, y, p))
        assert any(isinstance(one, tuff.Array) for one in got) and len(got) == len(wanted), (name, got)
        for one, other in zip(got, wanted):
            assert not isinstance(one, np.ndarray), name
            # Single precision, through iterations and quotients of sums that cancel.
            assert np.allclose(np.asarray(one, np.float64), other, rtol=2e-3, atol=2e-4), (name, one, other)
print("done")
"""


def test_functions_of_special_stats_and_cluster(backend):
    scipy = pytest.importorskip("scipy")
    if tuple(map(int, scipy.__version__.split(".")[:2])) < (1, 17):
        pytest.skip("SciPy takes these arrays since 1.17")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "SCIPY_ARRAY_API": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, "-c", PROGRAM, backend], env=environment, capture_output=True, text=True, timeout=500)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-2000:]

"""scikit-learn's estimators on arrays of a device (its array API dispatch), beside the same in NumPy."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import sys
import numpy as np, sklearn, tuff
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, f1_score, mean_squared_error, r2_score
from sklearn.metrics.pairwise import cosine_similarity, rbf_kernel
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import MinMaxScaler, StandardScaler

sklearn.set_config(array_api_dispatch=True)
rng = np.random.default_rng(0)
x = rng.standard_normal((80, 5)).astype(np.float32)
y = (x @ np.float32([1, -2, 3, 0, 1]) + 0.1 * rng.standard_normal(80)).astype(np.float32)
c = (y > 0).astype(np.int64)
calls = {
    "pca": lambda x, y, c: abs(PCA(3, svd_solver="full").fit_transform(x)),
    "pca by the covariance": lambda x, y, c: abs(PCA(3, svd_solver="covariance_eigh").fit_transform(x)),
    "pca, whitened": lambda x, y, c: abs(PCA(3, svd_solver="full", whiten=True).fit_transform(x)),
    "ridge": lambda x, y, c: Ridge(solver="svd").fit(x, y).predict(x),
    "logistic regression": lambda x, y, c: LogisticRegression(solver="lbfgs").fit(x, c).predict_proba(x),
    "discriminant analysis": lambda x, y, c: LinearDiscriminantAnalysis(solver="svd").fit(x, c).predict(x),
    "mixture": lambda x, y, c: GaussianMixture(2, init_params="random", random_state=0, max_iter=3).fit(x).means_,
    "scaled": lambda x, y, c: MinMaxScaler().fit_transform(x) + StandardScaler().fit_transform(x),
    "kernel": lambda x, y, c: rbf_kernel(x) + cosine_similarity(x),
    "accuracy": lambda x, y, c: accuracy_score(c, 1 * (x[:, 0] > 0)),
    "f1": lambda x, y, c: f1_score(c, 1 * (x[:, 0] > 0)),
    "squared error": lambda x, y, c: mean_squared_error(y, x[:, 0]),
    "r2": lambda x, y, c: r2_score(y, x[:, 0]),
}
with tuff.Context(backend=sys.argv[1]) as ctx:
    tuff._default._default = ctx
    on_device = [ctx.array(one, one.dtype) for one in (x, y, c)]
    for name, call in calls.items():
        got, wanted = call(*on_device), call(x, y, c)
        assert isinstance(got, (tuff.Array, float)), (name, type(got))
        assert not isinstance(got, tuff.Array) or got.context is ctx, name
        # Single precision, through decompositions and some iterations.
        assert np.allclose(np.asarray(got, np.float64), wanted, rtol=2e-3, atol=2e-3), (name, np.asarray(got) - wanted)
print("done")
"""


def test_estimators_and_metrics(backend):
    sklearn = pytest.importorskip("sklearn")
    pytest.importorskip("array_api_compat")
    if tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 8):
        pytest.skip("scikit-learn takes these since 1.8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "SCIPY_ARRAY_API": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, "-c", PROGRAM, backend], env=environment, capture_output=True, text=True, timeout=500)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-2000:]

"""Functions whose results have a size and a type that the arguments tell download nothing: they can be captured."""

import numpy as np
import pytest

import tuff

#: Of a matrix (4, 6) of floats, a vector of 6 floats and a vector of 6 integers.
USES = {
    "gradient": lambda x, v, n: tuff.gradient(x, 1.0, v),
    "interp": lambda x, v, n: tuff.interp(x, v, v),
    "interp with a period": lambda x, v, n: tuff.interp(x, v, v, period=3.0),
    "unwrap": lambda x, v, n: tuff.unwrap(x),
    "cov": lambda x, v, n: tuff.cov(x, fweights=n, aweights=v),
    "corrcoef": lambda x, v, n: tuff.corrcoef(x),
    "nanmedian": lambda x, v, n: tuff.nanmedian(x, (0, 1)),
    "nanquantile": lambda x, v, n: tuff.nanquantile(x, [0.2, 0.5], 1),
    "nancumsum": lambda x, v, n: tuff.nancumsum(x, 1),
    "isin": lambda x, v, n: tuff.isin(x, v),
    "isin of numbers": lambda x, v, n: tuff.isin(n, [1, 2]),
    "lexsort": lambda x, v, n: tuff.lexsort((v, n)),
    "sort_complex": lambda x, v, n: tuff.sort_complex(v.astype(np.complex64)),
    "digitize": lambda x, v, n: tuff.digitize(x, [0.0, 1.0]),
    "histogram": lambda x, v, n: tuff.histogram(v, [0.0, 1.0], weights=v),
    "histogram2d": lambda x, v, n: tuff.histogram2d(v, v, [[0.0, 1.0], [0.0, 1.0]], weights=v),
    "choose": lambda x, v, n: tuff.choose(n % 2, [v, v]),
    "copyto": lambda x, v, n: tuff.copyto(x, v, where=x > 0),
    "putmask": lambda x, v, n: tuff.putmask(x, x > 0, v),
    "put": lambda x, v, n: tuff.put(x, n, v),
    "fill_diagonal": lambda x, v, n: tuff.fill_diagonal(x, v),
    "delete": lambda x, v, n: tuff.delete(x, [1, 3], 1),
    "insert": lambda x, v, n: tuff.insert(v, n, v),
    "packbits": lambda x, v, n: tuff.unpackbits(tuff.packbits(n)),
    "frexp": lambda x, v, n: tuff.ldexp(*tuff.frexp(v)),
    "spacing": lambda x, v, n: tuff.spacing(v),
    "i0": lambda x, v, n: tuff.i0(v),
    "polyval": lambda x, v, n: tuff.polyval(v, x),
    "polymul": lambda x, v, n: tuff.polyder(tuff.polymul(v, n)),
    "polyint": lambda x, v, n: tuff.polyint(v, 2),
    "poly": lambda x, v, n: tuff.poly(v),
    "block": lambda x, v, n: tuff.block([[x], [v]]),
    "diag": lambda x, v, n: tuff.diag(v),
    "apply_along_axis": lambda x, v, n: tuff.apply_along_axis(lambda row: row.sum(), 1, x),
    "ix_": lambda x, v, n: x[tuff.ix_(n % 4, n)],
    "tril_indices_from": lambda x, v, n: tuff.tril_indices_from(x),
    "shares_memory": lambda x, v, n: tuff.shares_memory(x, v),
    "multi_dot": lambda x, v, n: tuff.linalg.multi_dot([x, x.T, x]),
    "matvec": lambda x, v, n: tuff.matvec(x, v),
    "angle": lambda x, v, n: tuff.angle(x),
    "ediff1d": lambda x, v, n: tuff.ediff1d(v, 1.0),
    "average": lambda x, v, n: tuff.average(x, 1, v, returned=True),
}


@pytest.mark.parametrize("name", USES)
def test_nothing_is_downloaded(shared, name, monkeypatch):
    x = shared.array(np.arange(24, dtype=np.float32).reshape(4, 6))
    v, n = shared.array(np.arange(6, dtype=np.float32)), shared.array(np.arange(6, dtype=np.int64))

    def refuse(*_):
        raise AssertionError("downloads")

    monkeypatch.setattr(tuff.Buffer, "download", refuse)
    monkeypatch.setattr(tuff.Array, "numpy", refuse)
    monkeypatch.setattr(tuff.Transposed, "numpy", refuse)
    USES[name](x, v, n)


def test_what_depends_on_elements_does(shared, monkeypatch):
    """The test above would see a download."""
    monkeypatch.setattr(tuff.Buffer, "download", lambda *_: pytest.fail("downloads"))
    with pytest.raises(pytest.fail.Exception, match="downloads"):
        tuff.union1d(shared.array([1.0]), shared.array([2.0]))

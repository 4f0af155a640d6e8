"""relu(A @ B) on the best device, with the Python package. Needs PYTHONPATH=python, or pip install ./python."""

import tuff

with tuff.Context() as ctx:
    a = ctx.array([[1, 2, 3], [4, 5, 6]])
    b = ctx.array([[-2, 1], [-1, -1], [1.5, 1]])
    c = (a @ b).relu()

    print("relu(A @ B), A 2x3, B 3x2:")
    for row in c.numpy():
        print("".join(f"  {value:.1f}" for value in row))

"""Honest twins: the golden once more, in other summation orders, tilings and storage points.

Nobody owes a kernel the rounding errors of one particular order of additions. So the golden runs again, with each of
its reductions and matrix products done in another order that a real kernel might use; the spread of these answers
around a float64 truth is the natural error of a case. The `twin` policy allows a small multiple of it, and
`pypto-op reproduce` compares a failing kernel's error with it.

`orders.py` holds the orders, `reordering.py` puts one of them under a running golden, `decompose.py` breaks torch's
larger operators into those that have an order.
"""

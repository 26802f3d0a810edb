"""Vector addition."""

import cuda.tile as ct


@ct.kernel
def vec_add(A, B, C, TILE: ct.Constant[int]):
    """C[i] = A[i] + B[i].

    Shapes:    A, B, C: [n], one element type, contiguous, base address a multiple of 16 bytes.
    Grid:      (ceil(n / TILE), 1, 1).
    Arguments: A, B, C.
    """
    i = ct.bid(0)
    a = ct.load(A, (i,), (TILE,))
    b = ct.load(B, (i,), (TILE,))
    ct.store(C, (i,), a + b)

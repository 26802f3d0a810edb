"""Matrix product."""

import cuda.tile as ct


@ct.kernel
def matmul(A, B, C, TM: ct.Constant[int], TN: ct.Constant[int], TK: ct.Constant[int]):
    """C = A @ B, accumulated in float32.

    Shapes:    A: [M, K], B: [K, N], C: [M, N]; row-major, last stride 1; base addresses and the
               bytes of a row multiples of 16. A and B have one element type, C is float32.
               M, N and K need not be multiples of the tile.
    Grid:      (ceil(M / TM), ceil(N / TN), 1).
    Arguments: A, B, C.
    """
    i = ct.bid(0)
    j = ct.bid(1)
    acc = ct.zeros((TM, TN), dtype=ct.float32)
    for k in range(ct.num_tiles(A, axis=1, shape=(TM, TK))):
        a = ct.load(A, (i, k), (TM, TK), padding_mode=ct.PaddingMode.ZERO)
        b = ct.load(B, (k, j), (TK, TN), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(a, b, acc)
    ct.store(C, (i, j), acc)

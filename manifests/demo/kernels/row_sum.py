"""Sum of each row."""

import cuda.tile as ct


@ct.kernel
def row_sum(X, S, W: ct.Constant[int]):
    """S[i] = sum of X[i, :], accumulated in float32.

    A row is read in tiles of W; N may be any length.

    Shapes:    X: [M, N]; row-major, last stride 1; base address and the bytes of a row multiples
               of 16. S: [M], float32, contiguous.
    Grid:      (M, 1, 1).
    Arguments: X, S.
    """
    i = ct.bid(0)
    total = ct.zeros((1, W), dtype=ct.float32)
    for k in range(ct.num_tiles(X, axis=1, shape=(1, W))):
        x = ct.load(X, (i, k), (1, W), padding_mode=ct.PaddingMode.ZERO)
        total += ct.astype(x, ct.float32)
    ct.store(S, (i,), ct.sum(total, axis=1))

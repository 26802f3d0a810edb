"""Softmax of each row."""

import cuda.tile as ct


@ct.kernel
def softmax(X, Y, W: ct.Constant[int]):
    """Y[i, :] = exp(X[i, :] - max) / sum(exp(X[i, :] - max)), computed in float32.

    A row is held in one tile, so N must not exceed W.

    Shapes:    X, Y: [M, N], one element type; row-major, last stride 1; base addresses and the
               bytes of a row multiples of 16.
    Grid:      (M, 1, 1).
    Arguments: X, Y.
    """
    i = ct.bid(0)
    x = ct.load(X, (i, 0), (1, W), padding_mode=ct.PaddingMode.NEG_INF)
    x = ct.astype(x, ct.float32)
    e = ct.exp(x - ct.max(x, axis=1, keepdims=True))
    y = e / ct.sum(e, axis=1, keepdims=True)
    ct.store(Y, (i, 0), ct.astype(y, Y.dtype), allow_tma=False)

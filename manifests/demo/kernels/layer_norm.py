"""Layer normalization of each row."""

import cuda.tile as ct


@ct.kernel(occupancy=ct.ByTarget(sm_80=2, default=4))
def layer_norm(X, G, B, Y, eps, W: ct.Constant[int]):
    """Y[i, j] = (X[i, j] - mean_i) / sqrt(var_i + eps) * G[j] + B[j], computed in float32.

    A row is read in tiles of W, once for the mean, once for the variance and once for the
    result; N may be any length.

    Shapes:    X, Y: [M, N], one element type; row-major, last stride 1; base addresses and the
               bytes of a row multiples of 16. G, B: [N], float32, contiguous.
    Grid:      (M, 1, 1).
    Arguments: X, G, B, Y, eps (float32).
    """
    i = ct.bid(0)
    n = X.shape[1]
    tiles = ct.num_tiles(X, axis=1, shape=(1, W))

    total = ct.zeros((1, W), dtype=ct.float32)
    for k in range(tiles):
        x = ct.load(X, (i, k), (1, W), padding_mode=ct.PaddingMode.ZERO)
        total += ct.astype(x, ct.float32)
    mean = ct.sum(total, axis=1, keepdims=True) / n

    squares = ct.zeros((1, W), dtype=ct.float32)
    for k in range(tiles):
        x = ct.load(X, (i, k), (1, W), padding_mode=ct.PaddingMode.ZERO)
        inside = k * W + ct.arange(W, dtype=ct.int32)[None, :] < n
        d = ct.where(inside, ct.astype(x, ct.float32) - mean, 0.0)
        squares += d * d
    scale = ct.rsqrt(ct.sum(squares, axis=1, keepdims=True) / n + eps)

    for k in range(tiles):
        x = ct.astype(ct.load(X, (i, k), (1, W)), ct.float32)
        g = ct.load(G, (k,), (W,))[None, :]
        b = ct.load(B, (k,), (W,))[None, :]
        ct.store(Y, (i, k), ct.astype((x - mean) * scale * g + b, Y.dtype),
                 allow_tma=False)

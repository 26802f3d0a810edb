"""One file a group of cases; each has CASES, in the order in which they run and are listed."""

from kcbench.cases import gc, hits, hostile, loader, loom, memory, miss, noop, pack, plan, share, size, start

ALL = [case for group in (start, noop, plan, hits, miss, loom, share, pack, size, loader, gc, memory, hostile) for case in group.CASES]

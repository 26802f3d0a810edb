"""Measures kc against rivals: see docs/performance.md."""

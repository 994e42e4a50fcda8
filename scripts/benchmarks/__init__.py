"""Measures speed and memory on synthetic data: one file a claim, each with a function `measure(options)`."""

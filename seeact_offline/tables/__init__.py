"""Finished results as text. Computes nothing."""

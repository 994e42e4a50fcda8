"""Scores finished run folders again, rereads, verifies, compares and lists them, and
estimates what a run would take."""

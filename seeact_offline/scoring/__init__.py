"""Predictions and truths -> step scores, averages and intervals, by named protocols. Knows no page and no model."""

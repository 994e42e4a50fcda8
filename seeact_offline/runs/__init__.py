"""Steps through ranking, asking and scoring, into a run directory that can be resumed."""

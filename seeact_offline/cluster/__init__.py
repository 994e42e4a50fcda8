"""Ray's workers rank and ask, in place of this process."""

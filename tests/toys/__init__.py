"""One of each thing that is added most often, as its author would write it: a single module."""

"""Engines that run the work: this machine, or Ray."""

"""Where work runs: this machine, or Ray."""

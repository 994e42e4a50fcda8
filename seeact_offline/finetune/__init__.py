"""The fine-tuned baselines: their data, their training, their evaluation and their card. One module a baseline."""

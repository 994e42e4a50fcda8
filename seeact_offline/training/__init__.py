"""The fine-tuned baselines: their data, their training, their evaluation and their card. One module a baseline."""

BASELINES = {"flan-t5": "flan_t5", "blip2": "blip2", "vlm": "vlm", "web-agent": "web_agent_tuning"}
"""Baselines by name -> the module that declares `BASELINE`. It is loaded for training alone: `finetune --help` needs the names."""

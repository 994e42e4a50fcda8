"""Training: the fine-tuned baselines (one module each: data, training, evaluation, card),
and an agent improved from its own attempts."""

BASELINES = {"flan-t5": "flan_t5", "blip2": "blip2", "vlm": "vlm", "web-agent": "web_agent_tuning"}
"""Baselines by name -> the module that declares `BASELINE`.
It is loaded for training alone: `finetune --help` needs the names."""

"""Our data, questions and scores as a task of Inspect, which brings models, limits, retries and its log viewer:

inspect eval seeact_offline/mind2web -T grounding=choice --model openai/gpt-4o
"""

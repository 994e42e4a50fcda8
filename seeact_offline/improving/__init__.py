"""An agent improved by its own attempts, as OpenWebVoyager is: imitate, explore, take feedback, train; cycle by cycle, in one folder.

Offline: over recorded train tasks, step by step with the recorded steps before, so that no attempt ever leaves the recorded path.
"""

"""Lets an agent act in a real browser, and judges it by the page's state.

A live page becomes a row, which the same code reads and asks about as a recorded one (`pages`, `speakers`); what the
agent says is carried out (`acting`), until it stops or a rule of its own ends the episode (`episodes`).
`running.browse` is the command `browse`.
"""

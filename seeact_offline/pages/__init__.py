"""Reads the visible page: its elements (`dom`), its picture (`screenshots`), marks on it (`marks`).

`search` finds elements by type and text: `element_texts` says what they can be called by, `wording` compares words.
"""

"""Reads the visible page: its elements (`dom`), its picture (`screenshots`), marks on it (`marks`).

`search` finds elements by type and text: `element_types`, `element_texts` (from `page_words` and `field_labels`), `wording`.
"""

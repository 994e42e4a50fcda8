"""What can be seen of a page: its elements (`dom`), their texts (`search`), its picture (`screenshots`), marks on it (`marks`)."""

"""That it happened in this order: chain, writer, verify, merkle. With event/envelope.py, the trusted core."""

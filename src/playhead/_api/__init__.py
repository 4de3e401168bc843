"""The verbs that a user imports."""

"""Watch the frameworks that run an agent's tools and name its steps; one small file each.

Each has the modules it waits for (`MODULES`) and a function that patches them (`patch`), like the HTTP clients, with
which they are installed and restored. What is not seen here is inferred from the model traffic (`capture/turns.py`).
"""

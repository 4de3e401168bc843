"""What a fact is: the line, its kinds, plain values, keys, schema."""

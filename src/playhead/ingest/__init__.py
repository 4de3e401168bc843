"""Read facts that somebody else noticed: git, CI. Bytes in, plain structs and events out; nothing here is stored."""

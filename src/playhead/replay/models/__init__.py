"""Ask models live, for a program that is replayed or without it: with another model, parameters or words."""

"""Where runs are kept. README.md tells the life of an event."""

"""Read spans and log records of OpenTelemetry, of every convention in the wild. Bytes in, structs out, no I/O."""

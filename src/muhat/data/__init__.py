"""From a source of records to exact integer sums: sources, the one kernel, the engine."""

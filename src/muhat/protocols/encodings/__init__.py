"""How a record becomes whole numbers, cells, or fragments of a number."""

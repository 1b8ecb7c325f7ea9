"""Forms of input and output: tables, lines of JSON, CSV, units, times, values of keys."""

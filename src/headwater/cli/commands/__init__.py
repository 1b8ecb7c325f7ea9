"""The commands, one file each: options in, calls of the public API, results out."""

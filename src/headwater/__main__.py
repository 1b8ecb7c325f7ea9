"""``python -m headwater`` is the command ``headwater``."""

from headwater.cli import main

if __name__ == "__main__":
    main()

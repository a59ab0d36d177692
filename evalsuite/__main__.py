"""``python -m evalsuite``: the command of a clone that is not installed."""

from evalsuite.cli import main

if __name__ == "__main__":
    raise SystemExit(main())

"""`python -m muhat` is `muhat`."""

from muhat.cli import main

if __name__ == "__main__":
    main()

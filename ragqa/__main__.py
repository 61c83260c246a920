"""`python -m ragqa` is the command `ragqa`."""

from ragqa.cli import main

if __name__ == "__main__":
    main()

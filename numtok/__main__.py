"""Entry point of ``python -m numtok``, which runs the command ``numtok``."""

from numtok.cli.main import main

if __name__ == "__main__":
    main()

"""Entry point for ``python -m numtok``, which runs the ``numtok`` command."""

from numtok.cli.main import main

if __name__ == "__main__":
    main()

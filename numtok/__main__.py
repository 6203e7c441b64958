"""``python -m numtok`` is ``numtok``."""

from numtok.cli.main import main

if __name__ == "__main__":
    main()

import sys

from tsvd._cli import main

if __name__ == "__main__":
    sys.exit(main())

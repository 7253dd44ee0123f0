import sys

from tsvd._cli import main

sys.exit(main())

"""`python -m worker` is `glistream`."""

from worker.cli import main

main()

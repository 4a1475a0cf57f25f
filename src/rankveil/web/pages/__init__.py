"""One module per page of the workbench; each offers `router`, which makes its routes."""

"""Side-by-side measurements of Glistream: one command each, results as JSON and a picture."""

"""Attention of every segment to itself, on the flat stream."""

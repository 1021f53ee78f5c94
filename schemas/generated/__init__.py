"""The JSON Schemas and the AsyncAPI document, written by `python -m schemas.export`; never edited by hand."""

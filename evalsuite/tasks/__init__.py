"""What a model is evaluated on: token streams and their documents, multiple-choice items, task files."""

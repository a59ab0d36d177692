"""One eval a file: what a model is asked, and the per-unit scores that come of it."""

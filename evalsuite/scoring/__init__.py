"""Log-likelihoods of token spans: what a model must offer, and the engine that batches it."""

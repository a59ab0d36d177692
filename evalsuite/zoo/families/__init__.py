"""The model families: one published architecture a file, each with its config, loader, writer and NLL."""

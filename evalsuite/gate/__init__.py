"""The regression gate: pairing, the verdict on a row, and the baselines it is judged against."""

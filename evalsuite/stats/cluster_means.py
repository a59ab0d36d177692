"""Student t intervals of means over items that come in clusters: of one version's scores, and of paired differences."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from evalsuite.stats._checks import as_vector
from evalsuite.stats.intervals import cluster_ratio_ci, mean_ci


def cluster_mean_ci(
    values: ArrayLike, clusters: Sequence[Hashable] | None = None, alpha: float = 0.05
) -> tuple[float, float, float]:
    """Return the mean of items and its interval when items of one cluster move together.

    `cluster_ratio_ci` with a weight of 1 an item: the number of items of a cluster is as random as their sum (CR1).

    Args:
        values: [n] finite scores.
        clusters: [n] cluster ids; None makes each item its own cluster.
        alpha: Miss rate of both sides together.

    Returns:
        (mean, lower end, upper end), in the unit of the values.

    Raises:
        ValueError: Lengths differ, a value is not finite, fewer than 2 clusters, or alpha outside (0, 1).
    """
    items = as_vector(values, "values")
    return cluster_ratio_ci(items, np.ones(items.size), clusters, alpha)


def paired_t_interval(
    differences: ArrayLike, clusters: Sequence[Hashable] | None = None, alpha: float = 0.05
) -> tuple[float, float, float]:
    """Return the mean paired difference and the t interval that belongs to the sign-flip test of cluster sums.

    With S_c the sums of the G clusters: (sum S_c -+ t_(G-1, 1-alpha/2) sqrt(G / (G - 1) * sum (S_c - mean S)^2)) / n.
    Unlike `cluster_mean_ci` it holds the number of items of a cluster fixed, as the test does; the two agree for
    clusters of one size.

    Args:
        differences: [n] finite values, one an item, positive = worse.
        clusters: [n] cluster ids; None makes each item its own cluster.
        alpha: Miss rate of both sides together.

    Returns:
        (mean difference of an item, lower end, upper end).

    Raises:
        ValueError: Lengths differ, a value is not finite, fewer than 2 clusters, or alpha outside (0, 1).
    """
    items = as_vector(differences, "differences", least=2)
    if clusters is None:
        return mean_ci(items, alpha)
    if len(clusters) != items.size:
        raise ValueError(f"got {items.size} differences and {len(clusters)} clusters, expected one of each an item")
    members: dict[Hashable, list[float]] = {}
    for cluster, difference in zip(clusters, items.tolist(), strict=True):
        members.setdefault(cluster, []).append(difference)
    if len(members) < 2:
        raise ValueError("found 1 cluster, expected at least 2 (one alone has no spread); score more of them")
    scale = len(members) / items.size  # from the mean of a cluster sum to that of an item
    mean, lower, upper = mean_ci([math.fsum(values) for values in members.values()], alpha)
    return mean * scale, lower * scale, upper * scale

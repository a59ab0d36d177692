"""Statistics of the suite: generator, accumulator, intervals and tests, all in float64.

Names are resolved on first use (PEP 562), so that importing this package loads neither SciPy nor torch. The files
state the formula they compute; none of them reads a clock, a global generator or an environment variable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.lazy import lazy_names

if TYPE_CHECKING:
    from evalsuite.stats.accumulator import NLLAccumulator, NLLSummary
    from evalsuite.stats.bootstrap import bootstrap_ci, quantile
    from evalsuite.stats.intervals import (
        bonett_wright_interval,
        cluster_ratio_ci,
        clustered_wilson_interval,
        fisher_z_interval,
        mean_ci,
        normal_cdf,
        normal_ppf,
        standard_error,
        t_cdf,
        t_ppf,
        wilson_interval,
    )
    from evalsuite.stats.pcg32 import PCG32, NormalStream, normal
    from evalsuite.stats.permutation import paired_permutation_test, permutation_test
    from evalsuite.stats.rank import average_ranks, spearman
    from evalsuite.stats.signflip import attainable_p, sign_flip_p

_HOME = {
    "NLLAccumulator": "accumulator",
    "NLLSummary": "accumulator",
    "NormalStream": "pcg32",
    "PCG32": "pcg32",
    "attainable_p": "signflip",
    "average_ranks": "rank",
    "bonett_wright_interval": "intervals",
    "bootstrap_ci": "bootstrap",
    "cluster_ratio_ci": "intervals",
    "clustered_wilson_interval": "intervals",
    "fisher_z_interval": "intervals",
    "mean_ci": "intervals",
    "normal": "pcg32",
    "normal_cdf": "intervals",
    "normal_ppf": "intervals",
    "paired_permutation_test": "permutation",
    "permutation_test": "permutation",
    "quantile": "bootstrap",
    "sign_flip_p": "signflip",
    "spearman": "rank",
    "standard_error": "intervals",
    "t_cdf": "intervals",
    "t_ppf": "intervals",
    "wilson_interval": "intervals",
}

__all__ = [
    "PCG32",
    "NLLAccumulator",
    "NLLSummary",
    "NormalStream",
    "attainable_p",
    "average_ranks",
    "bonett_wright_interval",
    "bootstrap_ci",
    "cluster_ratio_ci",
    "clustered_wilson_interval",
    "fisher_z_interval",
    "mean_ci",
    "normal",
    "normal_cdf",
    "normal_ppf",
    "paired_permutation_test",
    "permutation_test",
    "quantile",
    "sign_flip_p",
    "spearman",
    "standard_error",
    "t_cdf",
    "t_ppf",
    "wilson_interval",
]

__getattr__, __dir__ = lazy_names(globals(), {name: f"{__name__}.{home}" for name, home in _HOME.items()})

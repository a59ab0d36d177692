"""Statistics of the suite: generator, accumulator, intervals and tests, all in float64.

Names are resolved on first use (PEP 562), so that importing this package loads neither SciPy nor torch. The files
state the formula they compute; none of them reads a clock, a global generator or an environment variable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.lazy import lazy_names

if TYPE_CHECKING:
    from evalsuite.stats.accumulator import NLLAccumulator, NLLSummary
    from evalsuite.stats.attainable import attainable_map
    from evalsuite.stats.bca import bca_interval, equal_scores_interval
    from evalsuite.stats.bootstrap import bootstrap_ci, quantile
    from evalsuite.stats.cluster_means import cluster_mean_ci, paired_t_interval
    from evalsuite.stats.global_test import global_sign_flip
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
    from evalsuite.stats.multiplicity import benjamini_hochberg, discrete_holm, holm, partial_conjunction, weighted_holm
    from evalsuite.stats.pcg32 import PCG32, NormalStream, normal
    from evalsuite.stats.permutation import paired_permutation_test, permutation_test
    from evalsuite.stats.power import (
        mdd_binary,
        mdd_binary_exact,
        mdd_normal,
        minimal_losses,
        power_binary_exact,
        units_needed,
    )
    from evalsuite.stats.proportions import clopper_pearson_interval, tango_interval, tango_test
    from evalsuite.stats.rank import average_ranks, spearman
    from evalsuite.stats.signflip import attainable_p, sign_flip_p

_HOME = {
    "NLLAccumulator": "accumulator",
    "NLLSummary": "accumulator",
    "NormalStream": "pcg32",
    "PCG32": "pcg32",
    "attainable_map": "attainable",
    "attainable_p": "signflip",
    "average_ranks": "rank",
    "bca_interval": "bca",
    "benjamini_hochberg": "multiplicity",
    "bonett_wright_interval": "intervals",
    "bootstrap_ci": "bootstrap",
    "clopper_pearson_interval": "proportions",
    "cluster_mean_ci": "cluster_means",
    "cluster_ratio_ci": "intervals",
    "clustered_wilson_interval": "intervals",
    "discrete_holm": "multiplicity",
    "equal_scores_interval": "bca",
    "fisher_z_interval": "intervals",
    "global_sign_flip": "global_test",
    "holm": "multiplicity",
    "mdd_binary": "power",
    "mdd_binary_exact": "power",
    "mdd_normal": "power",
    "mean_ci": "intervals",
    "minimal_losses": "power",
    "normal": "pcg32",
    "normal_cdf": "intervals",
    "normal_ppf": "intervals",
    "paired_permutation_test": "permutation",
    "paired_t_interval": "cluster_means",
    "partial_conjunction": "multiplicity",
    "permutation_test": "permutation",
    "power_binary_exact": "power",
    "quantile": "bootstrap",
    "sign_flip_p": "signflip",
    "spearman": "rank",
    "standard_error": "intervals",
    "t_cdf": "intervals",
    "t_ppf": "intervals",
    "tango_interval": "proportions",
    "tango_test": "proportions",
    "units_needed": "power",
    "weighted_holm": "multiplicity",
    "wilson_interval": "intervals",
}

__all__ = [
    "PCG32",
    "NLLAccumulator",
    "NLLSummary",
    "NormalStream",
    "attainable_map",
    "attainable_p",
    "average_ranks",
    "bca_interval",
    "benjamini_hochberg",
    "bonett_wright_interval",
    "bootstrap_ci",
    "clopper_pearson_interval",
    "cluster_mean_ci",
    "cluster_ratio_ci",
    "clustered_wilson_interval",
    "discrete_holm",
    "equal_scores_interval",
    "fisher_z_interval",
    "global_sign_flip",
    "holm",
    "mdd_binary",
    "mdd_binary_exact",
    "mdd_normal",
    "mean_ci",
    "minimal_losses",
    "normal",
    "normal_cdf",
    "normal_ppf",
    "paired_permutation_test",
    "paired_t_interval",
    "partial_conjunction",
    "permutation_test",
    "power_binary_exact",
    "quantile",
    "sign_flip_p",
    "spearman",
    "standard_error",
    "t_cdf",
    "t_ppf",
    "tango_interval",
    "tango_test",
    "units_needed",
    "weighted_holm",
    "wilson_interval",
]

__getattr__, __dir__ = lazy_names(globals(), {name: f"{__name__}.{home}" for name, home in _HOME.items()})

"""The report: one validated dict that every writer renders.

``build`` makes the dict from the rows of a run and checks it; ``json_file`` writes it, the items and the row log;
``eval_results`` turns it into strict ``tl.eval-results.v1``; ``terminal`` is the last screen of a run, built from
``blocks`` (what is said about a row), ``commands`` (what to type next) and ``baselines`` (what it was compared with).

Nothing here computes a statistic, and nothing here imports torch, scipy or pytest.
"""

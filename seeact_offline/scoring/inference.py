"""Resampling, standard errors, intervals and tests over tasks: pure functions of arrays.

Steps of one task are alike, so the task is what is drawn, flipped and counted (`aggregate.by_task` defines the
clusters). All bounds are rounded to PLACES decimals, so that another machine's order of summation changes no byte.
docs/statistics.md says why each method was chosen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, reduce
from operator import add
from statistics import NormalDist

import numpy as np

# whole chunks of _CHUNK: `draws` fills its table chunk by chunk
RESAMPLES = 10_000
LEVEL = 0.95
# four of five comparisons, as reports say it
POWER = 0.8
PLACES = 9
EXACT_UP_TO = 13
"""Tasks up to which all patterns of signs are tried: 8,192 of them."""
FEWEST_TASKS = 6
"""Fewer tasks reject nothing at 5 %: of five, the rarest signs have p 2 / 32."""
SAME = 1e-12
"""Differences below this are rounding, not results."""
ZERO = 10.0**-PLACES
"""Bounds below this are 0."""
ALIKE = 0.3
"""Assumed correlation of two steps of a task where every step has the same value, which shows none."""
_CHUNK = 100
"""Resamples handled at once: what they need stays in the processor's cache."""


def total(values: Iterable[float]) -> float:
    """The sum from left to right. Python's own `sum` rounds otherwise from 3.12 on, so that results would have other
    last digits."""
    return reduce(add, values, 0.0)


# --- drawing tasks ---


@lru_cache(maxsize=4)
def draws(n_tasks: int, seed: int) -> np.ndarray:
    """The number of times that each resample holds each task, shape (RESAMPLES, n_tasks), of 8 bits: every figure uses
    the same draws.

    A count above 255 would take a chance of less than 1 in 256!.
    """
    rng = np.random.default_rng(seed)
    counts = np.empty((RESAMPLES, n_tasks), dtype=np.uint8)
    offsets = np.arange(_CHUNK)[:, None] * n_tasks
    for start in range(0, RESAMPLES, _CHUNK):
        drawn = rng.integers(0, n_tasks, (_CHUNK, n_tasks)) + offsets
        counts[start : start + _CHUNK] = np.bincount(drawn.ravel(), minlength=_CHUNK * n_tasks).reshape(_CHUNK, -1)
    counts.setflags(write=False)
    return counts


def resampled(task_means: np.ndarray, seed: int = 0) -> np.ndarray:
    """The macro average in each resample: shape (RESAMPLES, m) from (n_tasks, m), or (RESAMPLES,) from (n_tasks,)."""
    return _products(draws(len(task_means), seed), task_means) / len(task_means)


def _products(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    """`weights @ values` in floating point, chunk by chunk."""
    parts = [weights[i : i + _CHUNK].astype(float) @ values for i in range(0, len(weights), _CHUNK)]
    return np.concatenate(parts)


def _bounds(low: float, high: float) -> tuple[float, float]:
    # + 0.0: no negative zero
    return round(float(low), PLACES) + 0.0, round(float(high), PLACES) + 0.0


# --- one figure ---


@dataclass(frozen=True, slots=True)
class Interval:
    """The uncertainty of a figure, by its tasks."""

    ci95: tuple[float, float]
    se: float | None = None
    """Standard error of the figure, clustered by task; None for one task."""
    n_effective: float | None = None
    """The number of independent steps that would have that standard error."""
    method: str = "korn-graubard"
    """The method of `ci95`."""


def interval(figure: float, by_task: np.ndarray, spread: float, n_steps: int) -> Interval:
    """The interval of an average of values from 0 to 1.

    `by_task`: shape (n_tasks,), one value a task: their mean is the figure and their spread its uncertainty. For a
    macro average these are the tasks' means, for others `linearised`. `spread`: the same average of the steps' squared
    distances to the figure. One task does not show how tasks vary: [0, 1].

    >>> tasks = [[1.0, 0.0]] * 5 + [[1.0, 1.0]] * 5
    >>> of_mean = interval(0.75, np.array([sum(steps) / 2 for steps in tasks]), 0.1875, 20)
    >>> [round(end, 3) for end in of_mean.ci95], of_mean.method
    ([0.487, 0.923], 'korn-graubard')
    """
    n_tasks = len(by_task)
    if n_tasks < 2:
        return Interval((0.0, 1.0))
    se = standard_error(by_task)
    if not SAME < figure < 1 - SAME:
        independent = n_steps / (1 + (n_steps / n_tasks - 1) * ALIKE)
        return Interval(clopper_pearson(round(figure), independent), se, independent)
    # where tasks do not vary, they are all that is known to be independent
    n_effective = float(n_tasks) if se < SAME else min(spread / se**2, float(n_steps))
    # steps that earn a part, as of Operation F1, vary less than right and wrong ones: more trials have their variance
    trials = n_effective * (figure * (1 - figure) / spread if spread > SAME else 1.0)
    return Interval(korn_graubard(figure, trials, n_steps, degrees_of_freedom(by_task)), se, n_effective)


def standard_error(by_task: np.ndarray) -> float:
    """Clustered standard error of an average, from (n_tasks,) values of which it is the mean: sd over tasks /
    sqrt(n_tasks).

    Miller (arXiv 2411.00640, section 2.2) sums each cluster's deviations from the mean, squares and adds them. Of the
    macro average each task is one cluster and its mean, with weight 1 / n_tasks, is all it adds; the divisor n_tasks -
    1 takes the bias of few tasks away. Raises ValueError for fewer than two tasks.
    """
    if len(by_task) < 2:
        raise ValueError(f"by_task: expected at least two tasks, got {len(by_task)}")
    return float(np.std(by_task, ddof=1) / math.sqrt(len(by_task)))


def linearised(figure: float, added: np.ndarray) -> np.ndarray:
    """One value a task, whose mean is a ratio or a mean of ratios and whose spread over tasks is, to first order, that
    of it.

    `added`: shape (n_tasks,), what the task's steps add to the figure beyond their share of it; sums to 0. Source:
    Woodruff, JASA 66 (1971), 411-414.
    """
    return figure + len(added) * added


def degrees_of_freedom(by_task: np.ndarray) -> float:
    """Degrees of freedom of the variance of (n_tasks,) values: at most n_tasks - 1, about twice the tasks that show the
    rare kind where only few do, as those alone tell how it varies.

    Satterthwaite's: 2 / the squared coefficient of variation of the variance, (kurtosis - 1) / n_tasks + 2 / (n_tasks
    (n_tasks - 1)). Source: Biometrics Bulletin 2 (1946), 110-114.
    """
    n_tasks = len(by_task)
    squared = (by_task - by_task.mean()) ** 2
    variance = float(squared.mean())
    kurtosis = float((squared**2).mean()) / variance**2 if variance > SAME**2 else 1.0
    return min(max(2 * n_tasks / (kurtosis - 1 + 2 / (n_tasks - 1)), 1.0), n_tasks - 1.0)


def korn_graubard(share: float, n_effective: float, n_steps: int, df: float) -> tuple[float, float]:
    """Clopper-Pearson's interval of a share on the effective n, which few degrees of freedom make smaller.

    Source: Korn and Graubard, Survey Methodology 24 (1998), 193-201: the effective n times the square of t with n_steps
    - 1 degrees of freedom over t with those of the variance. They take n_tasks - 1, which covers too little near 0 and
    1: `degrees_of_freedom`.
    """
    wanted = (1 + LEVEL) / 2
    shrink = (t_quantile(wanted, max(n_steps - 1.0, df)) / t_quantile(wanted, df)) ** 2
    return clopper_pearson(share, n_effective * shrink)


def clopper_pearson(share: float, n: float) -> tuple[float, float]:
    """The exact interval of a share of n independent trials, which need not be whole."""
    hits, wanted = share * n, (1 + LEVEL) / 2
    low = beta_quantile(1 - wanted, hits, n - hits + 1) if hits > SAME else 0.0
    high = beta_quantile(wanted, hits + 1, n - hits) if n - hits > SAME else 1.0
    return _bounds(low, high)


def wilson(share: float, n: int) -> tuple[float, float]:
    """Wilson's score interval of a share of n independent trials; [0, 1] for fewer than two.

    >>> low, high = wilson(0.5, 10)
    >>> round(low, 3), round(high, 3)
    (0.237, 0.763)
    """
    if n < 2:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return _bounds(max(0.0, middle - half), min(1.0, middle + half))


# --- differences ---


@dataclass(frozen=True, slots=True)
class Gap:
    """A difference of two macro averages over the same steps, as fractions."""

    macro: float
    ci95: tuple[float, float] | None
    """The differences that flipping signs does not reject at 5 %, so 0 is among them just where p is not below 0.05.
    None for fewer than FEWEST_TASKS tasks, which reject nothing."""
    p: float
    """The two-sided p from flipping the signs of tasks' differences."""


def gaps(pairs: Sequence[np.ndarray], seed: int = 0) -> list[Gap]:
    """The mean of the tasks' differences of each pair, shape (n_tasks,), with its interval and its p."""
    intervals = sign_flip_intervals(pairs, seed)
    return [_gap(differences, ci95, seed) for differences, ci95 in zip(pairs, intervals, strict=True)]


def _gap(differences: np.ndarray, ci95: tuple[float, float] | None, seed: int) -> Gap:
    p = sign_flip_p(differences, seed)
    mean = float(differences.mean()) if len(differences) else 0.0
    # patterns drawn at random may part the two, and p is the exact one where few tasks differ
    if ci95 is not None and p >= 1 - LEVEL:
        ci95 = min(ci95[0], 0.0), max(ci95[1], 0.0)
    elif ci95 is not None:
        ci95 = (max(ci95[0], ZERO), ci95[1]) if mean > 0 else (ci95[0], min(ci95[1], -ZERO))
    return Gap(mean, ci95, p)


def sign_flip_p(differences: np.ndarray, seed: int = 0) -> float:
    """Two-sided p of the mean of (n_tasks,) differences: how often random signs give one at least as far from 0.

    Tasks without a difference look the same with either sign, so they are left out. Never 0: the signs found are a
    pattern too.
    """
    moved = differences[np.abs(differences) > SAME]
    if not len(moved):
        return 1.0
    signs = _signs(len(moved), seed)
    as_far = int((np.abs(_products(signs, moved)) >= abs(moved.sum()) - len(moved) * SAME).sum())
    return as_far / len(signs)


def sign_flip_intervals(pairs: Sequence[np.ndarray], seed: int = 0) -> list[tuple[float, float] | None]:
    """All means that `sign_flip_p` of a pair's differences, shape (n_tasks,), less that mean, does not reject at
    1 - LEVEL. All pairs are of the same tasks, and their signs are flipped at once.

    With tasks A flipped and B not, the flipped sum is as far from 0 as the unflipped just where the mean supposed lies
    between the means of A and B, or where A or B is empty. So p of a supposed mean is the share of patterns that hold
    it, and since all of them hold the mean found, the bounds are order statistics. None where the patterns that hold
    everything are enough.
    """
    differences = np.column_stack(pairs)
    n = len(differences)
    signs = _signs(n, seed)
    n_flipped = (n - signs.sum(axis=1, dtype=int)) // 2
    parting = (n_flipped > 0) & (n_flipped < n)
    k = math.ceil((1 - LEVEL) * len(signs)) - int((~parting).sum())
    if k <= 0:
        return [None] * len(pairs)
    n_flipped, flipped_sums = n_flipped[parting, None], _products(signs, differences)[parting]
    of_flipped = (differences.sum(axis=0) - flipped_sums) / (2 * n_flipped)
    of_others = (differences.sum(axis=0) + flipped_sums) / (2 * (n - n_flipped))
    lows = np.partition(np.minimum(of_flipped, of_others), k - 1, axis=0)[k - 1]
    highs = np.partition(np.maximum(of_flipped, of_others), -k, axis=0)[-k]
    bounds = zip(lows.tolist(), highs.tolist(), strict=True)
    return [_bounds(*(0.0 if abs(x) < ZERO else x for x in pair)) for pair in bounds]


@lru_cache(maxsize=4)
def _signs(n: int, seed: int) -> np.ndarray:
    """Patterns of -1 and 1, shape (n_patterns, n): all of them up to EXACT_UP_TO, else RESAMPLES random ones and that
    of no flip."""
    if n <= EXACT_UP_TO:
        return np.where((np.arange(2**n)[:, None] >> np.arange(n)) & 1, -1, 1).astype(np.int8)
    width = -(-n // 8)
    drawn = np.random.default_rng(seed).bytes(RESAMPLES * width) + b"\xff" * width
    bits = np.unpackbits(np.frombuffer(drawn, np.uint8)).reshape(RESAMPLES + 1, -1)[:, :n]
    return bits.astype(np.int8) * np.int8(2) - np.int8(1)


def mcnemar_p(only_first: int, only_second: int) -> float:
    """Exact two-sided p of McNemar's test, from the tasks that only the first of two did and those that only the second
    did; 1 for none.

    >>> mcnemar_p(0, 6)
    0.03125
    """
    n = only_first + only_second
    tail = sum(math.comb(n, k) for k in range(min(only_first, only_second) + 1))
    return float(min(1.0, 2 * tail / 2**n))


def holm(p_values: Sequence[float]) -> list[float]:
    """The p values adjusted for how many there are, in the given order. Source: Holm, Scand. J. Statist. 6 (1979),
    65-70."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, highest = [0.0] * len(p_values), 0.0
    for place, i in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - place) * p_values[i]))
        adjusted[i] = highest
    return adjusted


# --- planning ---


def detectable(sd: float, n_tasks: int) -> float | None:
    """The smallest difference that a two-sided test at 5 % finds with POWER, if tasks' differences vary by `sd`.

    None for fewer than FEWEST_TASKS.
    """
    return None if n_tasks < FEWEST_TASKS else _distance(n_tasks - 1) * sd / math.sqrt(n_tasks)


def tasks_to_detect(sd: float, difference: float) -> int:
    """The number of tasks that find this difference with POWER, if tasks' differences vary by `sd`; at least
    FEWEST_TASKS."""
    normal = NormalDist()
    z = normal.inv_cdf((1 + LEVEL) / 2) + normal.inv_cdf(POWER)
    n = max(FEWEST_TASKS, math.ceil((z * sd / difference) ** 2))
    # few tasks have a wider t; the normal answer is never too high
    while _distance(n - 1) * sd / math.sqrt(n) > difference:
        n += 1
    return n


@cache
def _distance(df: int) -> float:
    """Standard errors between 0 and a difference that is found with POWER."""
    return t_quantile((1 + LEVEL) / 2, df) + t_quantile(POWER, df)


# --- quantiles of the beta and the t distribution, without scipy ---


def beta_quantile(p: float, a: float, b: float) -> float:
    """The x at which the beta distribution with a, b > 0 reaches p, to 1e-12 or better, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if beta_cdf(middle, a, b) < p else (low, middle)
    return (low + high) / 2


@cache
def t_quantile(p: float, df: float) -> float:
    """The x at which Student's t reaches p, 0.5 <= p < 1: t squared / (df + t squared) is beta distributed."""
    if p == 0.5:
        return 0.0
    # 1 - x keeps its digits where x nears 1
    rest = beta_quantile(2 * (1 - p), df / 2, 0.5)
    return math.sqrt(df * (1 - rest) / rest)


def beta_cdf(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function by its continued fraction (NIST, DLMF 8.17.22)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - beta_cdf(1 - x, b, a)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(front) * _fraction(x, a, b) / a


def _fraction(x: float, a: float, b: float) -> float:
    """Evaluated from the front by Lentz's method, whose terms keep numerator and denominator apart from 0."""
    tiny = 1e-300
    c, d = 1.0, 1 / _nonzero(1 - (a + b) * x / (a + 1), tiny)
    value = d
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d, c = 1 / _nonzero(1 + term * d, tiny), _nonzero(1 + term / c, tiny)
            value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return value


def _nonzero(value: float, tiny: float) -> float:
    return value if abs(value) > tiny else tiny

"""A loss and a metric from outside, for regression with wild targets.

    grit train zinc-mini train.loss=log-cosh train.metric=median-error --plugin examples/plugins/robust_regression.py

The loss log(cosh(d)) is d²/2 near 0 and |d| far away. The metric is the median of |d|, which a few outliers do not move; it is
also shown for every other regression while the plugin is loaded.
"""

import math

import numpy as np
import torch.nn.functional as F

import grit
from grit.learning.losses import Loss, elementwise
from grit.learning.metrics import Metric


def log_cosh(difference):
    """log(cosh(d)) of each difference, in a form that does not overflow."""
    return difference.abs() + F.softplus(-2 * difference.abs()) - math.log(2)


def median_error(outputs, targets):
    """Median of |output - target| over the targets that are known; NaN if none is."""
    errors = np.abs(outputs - targets)[~np.isnan(targets)]
    return float(np.median(errors)) if errors.size else float("nan")


grit.LOSSES["log-cosh"] = Loss(("regression",), elementwise(log_cosh))
grit.METRICS["median-error"] = Metric(("regression",), median_error, higher_is_better=False)

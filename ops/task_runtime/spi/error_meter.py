"""The counts of records that fail, or that transformations leave out: Connect's
``task-error-metrics``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class ErrorMeter:
    """Of records, ``failures`` could not be converted or transformed, or were reported; of these,
    ``skipped`` were tolerated. ``error_retries`` are repeated conversions and transformations,
    ``filtered`` records that a transformation left out.
    """

    failures: int = 0
    logged: int = 0
    dead_letters: int = 0
    skipped: int = 0
    error_retries: int = 0
    filtered: int = 0


def error_metrics(meter: ErrorMeter) -> dict[str, int]:
    """Return the metrics under Connect's names; it has none for records that are left out."""
    return {
        "total-record-failures": meter.failures + meter.error_retries,
        "total-record-errors": meter.failures - meter.skipped,
        "total-records-skipped": meter.skipped,
        "total-retries": meter.error_retries,
        "total-errors-logged": meter.logged,
        "deadletterqueue-produce-requests": meter.dead_letters,
        "transform-record-filtered-total": meter.filtered,
    }

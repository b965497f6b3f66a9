"""What a transform of ``connectctl run`` implements and is given: a class with ``process``, or a
function of one DataFrame.

How to: docs/how-to/transforms.md.
"""

from __future__ import annotations

from connectctl.ops.task_runtime.spi.connector import Setting
from connectctl.ops.task_runtime.spi.transform import Guarantee, Output, Record, Records, Transform

__all__ = ["Guarantee", "Output", "Record", "Records", "Setting", "Transform"]

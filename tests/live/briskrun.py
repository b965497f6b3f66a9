"""``connectctl`` in a process of its own, with Spark, of which a run writes statuses every two
seconds and ends tasks that do not hear it for four.
"""

from __future__ import annotations

if __name__ == "__main__":
    from connectctl.cli.__main__ import main
    from connectctl.ops.task_runtime.job import rounds, scheduler

    for module in (rounds, scheduler):
        setattr(module, "REPORT", 2.0)  # noqa: B010  # a name that the module only imports
    setattr(rounds, "SILENCE", 4.0)  # noqa: B010
    main()

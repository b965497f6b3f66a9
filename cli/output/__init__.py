"""Output of commands: tables, JSON, findings in the forms of CI systems, progress; control
characters escaped.
"""

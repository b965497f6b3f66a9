"""What a command prints: tables, JSON, findings in the forms of CI systems, progress; harmless for a terminal."""

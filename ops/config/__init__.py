"""User input: the context file, settings, properties and templates, with secrets masked."""

"""What people write: the context file, settings, properties, templates; with secrets masked."""

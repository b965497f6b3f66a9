"""The embedded cluster: a real KRaft broker and real Connect workers as local child processes."""

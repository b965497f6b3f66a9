"""One consumer of a task slot: its membership in a consumer group, and the group's offsets."""

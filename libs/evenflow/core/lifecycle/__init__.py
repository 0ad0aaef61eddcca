"""The transition tables of task, attempt, member, node and transfer, and the closed lists: the only place."""

"""Queues: quota, order, and who must wait for whom."""

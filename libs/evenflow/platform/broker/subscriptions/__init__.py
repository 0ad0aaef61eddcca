"""Subscriptions: what a service handles, and the two ways of running it, with the one way of reading and parking."""

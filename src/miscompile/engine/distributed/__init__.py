"""Campaigns on several machines."""

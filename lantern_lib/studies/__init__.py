"""Sweeps over the simulator whose results the book shows."""

"""Figures of the course: one function per figure, one module per part."""

"""Recipes: what they say, how they are kept in files and stores, and whether they still hold."""

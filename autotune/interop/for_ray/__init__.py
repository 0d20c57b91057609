"""The parts of the searcher for Ray Tune."""

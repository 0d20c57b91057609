"""The hook for training loops that others wrote: one file a framework, loaded only where it is used."""

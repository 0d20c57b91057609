"""How do we know: machine, devices, software and code, captured once and hashed."""

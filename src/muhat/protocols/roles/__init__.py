"""Who takes part: devices, the shuffler and the server, and what they send each other."""

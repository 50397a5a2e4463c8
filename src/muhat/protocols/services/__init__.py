"""Shuffler and server as HTTP services (extra `serve`), and what devices send to them with."""

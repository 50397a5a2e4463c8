"""What one device does with a record: the message, its promise, and its part of the noise."""

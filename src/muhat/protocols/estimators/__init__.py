"""What is read off many messages, and how far off it is."""

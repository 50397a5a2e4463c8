"""How statistics are answered: integers, noise, and the proof that the promise is kept."""

"""What can be asked: frozen descriptions, checked when they are made, that know no promise."""

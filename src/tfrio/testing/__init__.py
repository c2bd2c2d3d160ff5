"""What tests lean on, ours and yours: a plain-Python reference reader of the format."""

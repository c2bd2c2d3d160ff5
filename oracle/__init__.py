"""Compare tfrio's files with TensorFlow's, both ways; run nightly, never by `make test`."""

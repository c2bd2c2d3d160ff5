"""Records to features and back: schema, columns, decoding and encoding of tf.train.Example."""

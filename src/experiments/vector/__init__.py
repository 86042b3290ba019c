"""Mean-field theories of vector spins against sampled spins: how far they can be trusted. With the records."""

"""Below the tables: addresses, connections, transactions, schema versions, and refusals in words."""

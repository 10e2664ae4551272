"""What is to be done, and who may do it: ledger, log reading, leases, landing files, plans, certificates."""

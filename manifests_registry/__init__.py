"""Which manifest a tool runs under, and why that one."""

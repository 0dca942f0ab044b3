"""Plan, execute, verify and settle: the way back."""

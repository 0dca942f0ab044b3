"""The console: the pages on which people read runs, plans and reports, and do what their roles allow.

Views translate, ask one query or operation, and translate back. Every page asks `approvals.core.people.may` about the
caller, the same predicate that operations enforce. Texts of agents are shown as text: escaped by the templates, and
with control and bidirectional characters made visible in whatever leaves this package.
"""

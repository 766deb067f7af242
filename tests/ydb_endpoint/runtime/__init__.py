"""YQL at work: texts compiled against the schema, and executed in transactions."""

"""How results look: tables and sentences for people, JSON for programs. Nothing here calls a scheduler or a store."""

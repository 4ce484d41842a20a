"""The propositions of the paper as checks, and which graphs an encoding tells apart."""

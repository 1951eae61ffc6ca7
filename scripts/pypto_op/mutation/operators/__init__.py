"""Mutation operators, grouped by what they touch; `registry` lists them all."""

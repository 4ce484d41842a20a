"""Damaged, hostile and random inputs: each must succeed, or end in one clear message. ``python -m tests.fuzz`` runs them.

A kind of input is a module with two functions and a line in `tests.fuzz.kinds`:

    make_input(rng)          the input, a Python literal, from a seeded generator
    try_it(value, folder)    use it inside an empty folder, and check what came of it

`try_it` returns if grit accepted the input, and lets a `GritError` pass if grit refused it. Anything else is a failure: another
exception, a crash, a hang, a wrong number (an AssertionError of the module's own), or a temporary file that stays behind.
"""

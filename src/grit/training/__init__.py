"""Training: configuration, recipes, schedule, optimisation."""

"""What is minimised, what is measured, and how steps are taken: `LOSSES`, `METRICS`, `OPTIMIZERS`, `SCHEDULES`."""

"""The synthetic experiment: can one attention learn to attend to the nodes k steps away?"""

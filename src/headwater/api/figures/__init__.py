"""How a pipeline is doing, from what runners have written down: at a glance, over time, in full."""

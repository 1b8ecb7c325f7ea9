"""What stays right while the rows of tables change, move and go: joins and groups with retractions."""

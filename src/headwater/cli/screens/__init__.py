"""What is drawn on a terminal and redrawn while work goes on: screens, progress, summaries."""

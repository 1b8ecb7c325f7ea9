"""A feed of a topic by UDP multicast: records with their offsets; what is lost is fetched from the log."""

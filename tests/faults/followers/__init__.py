"""What ``test_followers_kill.py`` kills: a capture and a pipeline with followers, the load that goes on
meanwhile, and how source and followers are read at the end.
"""

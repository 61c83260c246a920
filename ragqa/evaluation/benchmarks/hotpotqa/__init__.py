"""Questions that two documents answer together: are both found?"""

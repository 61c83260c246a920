"""Who may do what, and the log of what was done; knows nothing of Streamlit. Begin with README.md."""

"""Access control and the audit log, without any dependence on Streamlit. Begin with README.md."""

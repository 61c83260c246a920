"""An index whose corpus is in Milvus."""

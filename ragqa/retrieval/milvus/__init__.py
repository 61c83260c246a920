"""An index whose passages and vectors are in Milvus."""

"""A language model behind the OpenAI protocol: client, reply, retry, and the writer that uses it."""

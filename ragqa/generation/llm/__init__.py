"""A language model behind the OpenAI protocol: client, reply, retry, and the generator that uses it."""

"""PandaChat-RAG-sl: 206 Slovenian questions, each with the one document that answers it."""

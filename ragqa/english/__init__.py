"""English text taken apart: sentences, words, quantities, dates, languages. Pure."""

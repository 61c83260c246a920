"""Analysis of English text: sentences, words, quantities, dates, languages. Pure."""

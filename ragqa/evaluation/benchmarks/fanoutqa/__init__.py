"""FanOutQA (Zhu et al. 2024): questions that many Wikipedia pages answer together; see README.md here."""

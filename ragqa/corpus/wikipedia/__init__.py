"""Wikipedia as a corpus: a MediaWiki server, a Kiwix server, a ZIM file, a dump; all become Markdown, then passages."""

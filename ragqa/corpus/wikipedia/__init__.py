"""Wikipedia as a corpus: a MediaWiki or Kiwix server, a ZIM file or a dump becomes Markdown and then passages."""

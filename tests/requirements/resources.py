"""What the Resource Library promises (network.md, Resources)."""

REQUIREMENTS: dict[str, str] = {
    "resource.form": "title, description, tags, media type and size have limits; contents are kept as they came",
    "resource.edit": "an update changes what it is given, and the version rises by one; an expected version is kept to",
    "resource.whole": "a resource and its content change together, whoever reads and whatever fails",
    "resource.access": "public, agreement and private are looked at at each read, and each hit says what is true then",
    "resource.private": "a private resource is to others as one that does not exist, in a search too",
    "resource.publisher": "resources of a publisher that is suspended or gone are not there, and come back with it",
    "resource.search": "words, tag and publisher find what they should, the best first, with metadata alone",
    "resource.search-pages": "pages of a search show each hit once, whatever comes and goes meanwhile",
    "resource.search-fair": "an agent searches one by one: however many come at once, others get theirs",
    "resource.provenance": "what is read comes with publisher, times, version and the SHA-256 of the content",
    "resource.damaged": "a content that is not what was published is unavailable, and named in the log",
    "resource.limits": "an agent has so many resources and bytes; one that nobody has claimed publishes none",
    "resource.removed": "what a gone agent published is removed within a day, bit by bit",
    "resource.mcp": "turret://resource/<id> is the content with its media type and provenance",
    "resource.client": "the client publishes, finds and reads, and takes no content whose sum is another",
    "resource.check": "a check of a store looks through resources: contents by their sums, libraries by counts, words",
}

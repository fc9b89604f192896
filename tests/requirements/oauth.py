"""What the broker promises as a protected resource."""

REQUIREMENTS: dict[str, str] = {
    "oauth.document": "each face has its own RFC 9728 document, at the well-known path with the face's own put "
    "in, and the endpoint's at the root form too; any page may read them",
    "oauth.typed-url": "a document's resource is the URL that the client typed, host and slash included, where "
    "that host is ours",
    "oauth.challenge": "a 401 carries WWW-Authenticate with the document's URL and all scopes of the face, and "
    "says invalid_token where one was shown",
    "oauth.guarded-faces": "network, arena and trial ask for a token before anything else; where no token can be "
    "had, they are not there",
    "oauth.open-faces": "the endpoint and the wire's face need no token; a good one makes the caller, a bad one "
    "is 401",
    "oauth.audience": "a token is good for the face that is its audience, one for the endpoint for all faces",
    "oauth.bad-token": "a token that is unknown, over, not yet begun, of another issuer, for another resource or "
    "bound to a key is refused",
    "oauth.scope": "a token without any scope of a guarded face is 403 with all scopes of the face",
    "oauth.introspection": "tokens of an outside issuer are judged by it, where its own document says",
    "oauth.signed": "where the broker may not ask it, an outside issuer's signed tokens are verified by the keys "
    "that its document names, asymmetric ones alone; a rotation is seen, and made-up key ids cost it nothing",
    "oauth.outside": "an outside subject of our form is that agent or owner; any other acts for no agent",
    "oauth.issuer-away": "an issuer that gives no answer in time, or not as itself, makes 503, never a pass",
    "oauth.cache": "an issuer's yes is believed for a minute and never beyond the token's end, in bounded memory",
    "oauth.secrecy": "no token is logged or told",
    "oauth.session": "a session belongs to a token's subject (of an outside issuer: issuer and subject): it "
    "survives a refreshed token, also by another client, and is not there for anybody else; one that nobody "
    "in particular opened becomes that of the first who shows a token",
    "oauth.settings": "an outside issuer is set by https where it is not on this machine, with client and secret "
    "or without both, and with a public URL where the broker is not on this machine",
}

"""The embedded authorization server: who is let in, for whom, and how that ends."""

REQUIREMENTS: dict[str, str] = {
    "signin.consent": "an owner is shown what a client asks for, decides once within ten minutes, and may give "
    "less; the client hears of it by its redirect, with its state and the issuer",
    "signin.subject": "an owner consents for itself or for one of its own agents; another's agent is missing",
    "signin.redirect": "a user is sent to a redirect that the client registered, compared exactly but for the "
    "port on the user's own machine; a wrong client or redirect leads nowhere",
    "signin.registration": "anybody may register a client, 20 an hour an address, whose redirects are https or on "
    "the user's machine; bad metadata is refused with OAuth's code",
    "signin.bounds": "what anybody may ask for takes bounded room: requests that wait, clients that registered",
    "signin.documents": "a client may be a URL, which its document must name as its client_id",
    "signin.revoke": "an owner sees its own grants and ends them; what came of one is over at once",
    "signin.code": "a code serves once, for a minute, for the client, redirect, verifier and resource it was made "
    "for",
    "signin.refresh": "a refresh token serves once and brings the next; it may ask for less and never for more, "
    "and is over when nobody used it for 30 days; who knows a grant's id alone can do nothing to it",
    "signin.stolen": "a code or refresh token that comes a second time ends the grant and all that came of it",
    "signin.standing": "a subject that may not speak gets no token; what it was granted serves again once it may",
    "signin.client-secret": "a client that has a secret proves itself by it; one that has none shows none",
    "signin.agent-key": "an agent gets tokens by an assertion that a live key of its signed; an assertion serves "
    "once",
    "signin.agent-secret": "an agent gets tokens by the credential that an operator made for it",
    "signin.guesses": "an address that guesses secrets is stopped for a while",
    "signin.refused": "refused sign-ins are summed by address and minute, in bounded memory",
    "signin.jose": "signed tokens have one algorithm that fits the key, one spelling and one meaning: none, "
    "shared secrets, keys out of headers, critical extensions and doubled members are refused",
    "signin.keys": "the server's keys are made at the first start, for their owner alone, and are seen in no text",
    "signin.rotation": "a key signs for 30 days; an old one stays in the set until its last token is over",
    "signin.tokens": "an access token is signed by Ed25519, for one resource, good for 15 minutes, and says whose "
    "it is; nothing else that our key signed is taken for one",
    "signin.outbound": "no address that is not public is connected to, in whatever form it comes, whatever a name "
    "resolves to a moment later; no redirects, one answer, bounded in size and time",
    "signin.forms": "endpoints take one form (or JSON) in which nothing stands twice, and answer errors with "
    "OAuth's codes, kept by no cache",
    "signin.metadata": "the metadata names the issuer byte for byte, the same everywhere, and each endpoint that "
    "there is; any page may read it; what we are not is a clean 404",
    "signin.resource": "a token is for one resource of ours; without one asked for, the whole endpoint, with the "
    "scopes of its face",
    "signin.authorize": "a good authorization request leads to the consent page; PKCE by S256 is asked of "
    "everybody; what is wrong goes back to the client with its state and our issuer",
    "signin.unasked": "nobody is sent to another site by a client's wrong request: a page names it, with a link",
    "signin.flow": "a client with nothing but the URL gets in: 401, metadata, registration or document, code, "
    "token, call",
    "signin.introspection": "who has proved itself is told what a token says while it is good, and inactive else",
    "signin.secrecy": "no secret or token stands in a log, an error text or a URL of ours",
    "signin.bearer": "a token is looked at for its signature, issuer, resource and time, then its subject's "
    "standing, then its scopes",
    "signin.hostile": "whatever is sent for a token, a form, metadata, a URL or a set of keys gets a value or a "
    "refusal, and soon",
}

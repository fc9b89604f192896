"""Contact requests and agreements (docs/reference/network.md, Agreements)."""

REQUIREMENTS: dict[str, str] = {
    "agreement.asked": "a request names purpose, scopes and days, waits 30 days with its target, and both see it",
    "agreement.accepted": "accepting makes one agreement, with at most the scopes and days asked for",
    "agreement.once": "a request is answered once, however many answer at once",
    "agreement.one-open": "one request waits between two agents, and nothing is asked for that is agreed on already",
    "agreement.cancelled": "who asked takes a request back while it waits",
    "agreement.policies": "the target's policy says whether it, its owner or nobody answers, or all are accepted",
    "agreement.owner-decides": "what waits for the owner the owner alone answers, and who asked does not learn of it",
    "agreement.decline-alike": "a policy of deny tells no more than a decline does",
    "agreement.cool-down": "who was declined may not ask the same agent again for a week, nor after three declines in "
    "30 days",
    "agreement.quota": "an agent makes 20 requests in 24 hours, and 50 wait at most",
    "agreement.tier": "an unclaimed agent holds one agreement, also of several acceptances at once",
    "agreement.allows": "an agreement allows its scopes, its way, until its end, and nothing else",
    "agreement.expires": "requests and agreements end by themselves, and both sides hear of it",
    "agreement.revoked": "a revocation by either side stops everything that comes after it, also what is on its way",
    "agreement.silent": "with an agent that is suspended or gone nothing is allowed, and it looks missing; what was "
    "agreed comes back with it",
    "agreement.foreign": "a foreign request or agreement looks like a missing one, and costs no actor",
    "agreement.listed": "requests and agreements are listed newest first, by cursor",
    "agreement.kept": "requests, agreements and declines outlive a restart",
    "agreement.predicted": "every answer of a program of agents and restarts is the one that the law predicts",
    "agreement.at-once": "whatever many agents do at once, what is counted is what is there, and no limit is passed",
    "agreement.operator": "an operator's grant is one way, listed as such, and taken back at once",
}

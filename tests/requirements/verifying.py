"""Who verifies signatures, and what is held to: the loop's budget, and helper processes."""

REQUIREMENTS: dict[str, str] = {
    "keys.budget": "the loop verifies at most its budget between two turns to the sockets",
    "keys.order": "signatures by one key are answered in the order in which they came, whoever verifies them",
    "keys.helpers-strict": "a helper process judges every signature as the broker itself does",
    "keys.helpers-held": "a helper's verdict counts only for the batch that is due, whole and in the form agreed",
    "keys.helpers-replaced": "what a helper owes when it ends, hangs or answers nonsense, the loop verifies itself",
    "keys.helpers-apart": "a helper gets no secret, ends with its broker, and is not for a terminal's interrupt",
}

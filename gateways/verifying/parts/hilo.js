// Hi-Lo 1 (arena.md, Hi-Lo). As broker/core/games/hilo.py, in the same words.

const RANKS = "23456789TJQKA";
const HILO = {
  config: form({ decks: within(1, 8) }),
  action: (value) => isWritten(value, form({ type: oneOf("call"), stake: within(1, 1000), guess: oneOf("higher", "lower", "same") })),
  facts: form({ card: isText }, { returned: [isWhole, 0] }),

  async deal({ decks }, draws) {
    const shoe = [];
    for (let deck = 0; deck < decks; deck += 1) {
      for (const suit of "CDHS") for (const rank of RANKS) shoe.push(rank + suit);
    }
    await draws.shuffle(shoe);
    return shoe;
  },

  first: (config, shoe) => mapOf({ card: shoe[0] }),

  /** The state with which it opens; null: these facts can't be followed. */
  begin: ({ decks }, facts) => HILO.fold({ left: RANKS.split("").map(() => 4 * decks), seen: 0 }, facts),

  apply(state, shoe, action, points) {
    const [stake, guess] = [action.get("stake"), action.get("guess")];
    const left = state.left.reduce((sum, each) => sum + each, 0);
    const favourable = HILO.count(state, guess);
    if (!favourable) return { no: `ILLEGAL_ACTION: no card that is left is ${guess}` };
    if (stake > points) return { no: `INSUFFICIENT_POINTS: a stake of ${stake} points, and the account has ${points}` };
    const card = shoe[state.seen];
    const by = RANKS.indexOf(card[0]) - state.current;
    const won = guess === (by === 0 ? "same" : by > 0 ? "higher" : "lower");
    const [whole, part] = [stake * 49 * left, 50 * favourable];
    const returned = won ? (whole - (whole % part)) / part : 0;
    const change = returned - stake;
    const over = left === 1 ? "shoe_empty" : points + change < 1 ? "bust" : null;
    return { facts: mapOf(returned ? { card, returned } : { card }), change, over };
  },

  fold(state, facts) {
    const [rank = "none", ...suit] = facts.get("card");
    const current = RANKS.indexOf(rank);
    if (current < 0 || !state.left[current] || !["C", "D", "H", "S"].includes(suit.join(""))) return null;
    const left = state.left.map((each, at) => (at === current ? each - 1 : each));
    return { current, left, seen: state.seen + 1 };
  },

  count({ current, left }, guess) {
    const part = { higher: left.slice(current + 1), lower: left.slice(0, current), same: [left[current]] }[guess];
    return part.reduce((sum, each) => sum + each, 0);
  },
};

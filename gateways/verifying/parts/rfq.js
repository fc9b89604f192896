// RFQ 1 (arena.md, RFQ). As broker/core/games/rfq.py, in the same words.

const isPrice = within(0, 1_000_000);
const QUOTE = form({ type: oneOf("quote") }, { bid: [isPrice, null], ask: [isPrice, null] });
const PASS = form({ type: oneOf("pass") });
const RFQ = {
  config: form({ steps: within(1, 250), volatility: within(1, 20), inventory_limit: within(5, 50) }),
  action: (value) => isWritten(value, QUOTE) || isWritten(value, PASS),
  facts: form({ reference: isWhole }, { size: [isWhole, 0], client: [oneOf("buys", "sells"), null], price: [isWhole, null] }),

  async deal({ steps, volatility }, draws) {
    const tape = [];
    for (let step = 0; step < steps; step += 1) {
      const size = 1 + (await draws.below(5));
      const move = (await draws.below(2 * volatility + 1)) - volatility;
      let side = (await draws.below(2)) === 0 ? "buys" : "sells";
      if ((await draws.below(3)) === 0 && move !== 0) side = move > 0 ? "buys" : "sells";
      tape.push({ size, move, side, distance: await draws.below(2 * volatility + 1) });
    }
    return tape;
  },

  first: (config, tape) => mapOf({ reference: 10_000, size: tape[0].size }),

  begin: (config, facts) => ({ config, step: 0, reference: facts.get("reference"), size: facts.get("size") ?? 0, inventory: 0 }),

  apply(state, tape, action, points) {
    const [bid, ask] = [action.get("bid") ?? null, action.get("ask") ?? null];
    const why = action.get("type") === "quote" ? RFQ.fault(state, bid, ask) : "";
    if (why) return { no: `ILLEGAL_ACTION: ${why}` };
    const needed = RFQ.worst(state, bid, ask);
    if (needed > points) return { no: `INSUFFICIENT_POINTS: this could lose ${needed} points, and the account has ${points}` };
    const request = tape[state.step];
    const price = RFQ.fill(state.reference, request, bid, ask);
    const bought = price === null ? 0 : request.side === "sells" ? state.size : -state.size;
    const inventory = state.inventory + bought;
    const change = (price === null ? 0 : bought * (state.reference - price)) + inventory * request.move + 0; // no −0
    const last = state.step + 1 === tape.length;
    const facts = { reference: state.reference + request.move };
    if (!last) facts.size = tape[state.step + 1].size;
    if (price !== null) Object.assign(facts, { client: request.side, price });
    const short = points + change < Math.abs(inventory) * state.config.volatility;
    return { facts: mapOf(facts), change, over: last ? "tape_over" : short ? "bust" : null };
  },

  fold(state, facts) {
    if (state.step >= state.config.steps) return null;
    const bought = { sells: state.size, buys: -state.size }[facts.get("client")] ?? 0;
    const [reference, size] = [facts.get("reference"), facts.get("size") ?? 0];
    return { ...state, step: state.step + 1, reference, size, inventory: state.inventory + bought };
  },

  exposure: ({ inventory, config }, bought) => Math.abs(inventory + bought) * config.volatility,

  /** What is wrong with a quote, whatever the account has; "" where nothing is. */
  fault(state, bid, ask) {
    const { reference, inventory, size, config } = state;
    if (bid === null && ask === null) return "a quote has a bid or an ask; to name none is to pass";
    if (bid !== null && ask !== null && bid >= ask) return "a bid is below the ask";
    for (const [side, price, bought] of [["bid", bid, size], ["ask", ask, -size]]) {
      if (price === null) continue;
      const widest = 2 * config.volatility;
      if (Math.abs(price - reference) > widest) return `the ${side} is within ${widest} points of the reference, ${reference}`;
      if (Math.abs(inventory + bought) > config.inventory_limit) return `with a ${side} the inventory could be ${inventory + bought}: leave it out`;
    }
    return "";
  },

  /** The most that a step with this quote can lose. */
  worst(state, bid, ask) {
    const { reference, size } = state;
    const losses = [RFQ.exposure(state, 0)];
    if (bid !== null) losses.push(size * (bid - reference) + RFQ.exposure(state, size));
    if (ask !== null) losses.push(size * (reference - ask) + RFQ.exposure(state, -size));
    return Math.max(...losses);
  },

  fill(reference, { side, distance }, bid, ask) {
    if (side === "buys") return ask !== null && ask <= reference + distance ? ask : null;
    return bid !== null && bid >= reference - distance ? bid : null;
  },
};

// Chance of the arena (arena.md, Chance): the commit, and draws. As broker/core/chance.py.

const WORDS = 2n ** 64n;

function joined(...parts) {
  const all = new Uint8Array(parts.reduce((size, each) => size + each.length, 0));
  let at = 0;
  for (const each of parts) {
    all.set(each, at);
    at += each.length;
  }
  return all;
}

/** A number as eight bytes, big-endian. */
function eightBytes(number) {
  const view = new DataView(new ArrayBuffer(8));
  view.setBigUint64(0, BigInt(number));
  return new Uint8Array(view.buffer);
}

async function commitOf({ seed, salt }, agentId, games) {
  const tag = encoder.encode("turret/arena/commit/1\0");
  const text = joined(tag, bytesOf(seed), bytesOf(salt), encoder.encode(agentId), eightBytes(games));
  return hexOf(await sha256(text));
}

/** The draws of one session, one after the other. */
class Draws {
  constructor(key, message) {
    this.key = key;
    this.message = message;
    this.count = 0;
  }

  static async of(seed, game, version, clientSeed) {
    const hmac = { name: "HMAC", hash: "SHA-256" };
    const key = await crypto.subtle.importKey("raw", bytesOf(seed), hmac, false, ["sign"]);
    return new Draws(key, encoder.encode(`turret/arena/draw/1\0${game}/${version}\0${clientSeed}`));
  }

  /** The next 64 bits, as a BigInt. */
  async word() {
    const message = joined(this.message, eightBytes(this.count));
    this.count += 1;
    return new DataView(await crypto.subtle.sign("HMAC", this.key, message)).getBigUint64(0);
  }

  /** A whole number from 0 to n - 1: a word of the last span, which is not whole, is drawn again. */
  async below(n) {
    const end = WORDS - (WORDS % BigInt(n));
    let word = await this.word();
    while (word >= end) word = await this.word();
    return Number(word % BigInt(n));
  }

  async shuffle(items) {
    for (let last = items.length - 1; last > 0; last -= 1) {
      const other = await this.below(last + 1);
      [items[last], items[other]] = [items[other], items[last]];
    }
  }
}

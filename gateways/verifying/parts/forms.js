// What values look like: predicates, and objects by their members. As msgspec reads and writes the structs of
// broker/core/arena.py and of the games.

const isText = (value) => typeof value === "string";
const isWhole = (value) => Number.isInteger(value);
const isObject = (value) => value instanceof Map;
const isHex = matches(PK);
const within = (least, most) => (value) => isWhole(value) && value >= least && value <= most;
const oneOf = (...values) => (value) => values.includes(value);
const orNull = (holds) => (value) => value === null || holds(value);

/** An object's form: its members; of `optional` ones [predicate, what it is where it is left out]. */
const form = (members, optional = {}) => ({ members, optional });
const knows = (members, name) => Object.hasOwn(members, name);

/** Whether a value is written as the broker writes it: every member, no other, and none that could be left out. */
function isWritten(value, { members, optional }) {
  if (!isObject(value)) return false;
  for (const [name, each] of value) {
    if (knows(members, name) ? !members[name](each) : !knows(optional, name)) return false;
    if (knows(optional, name) && !(optional[name][0](each) && each !== optional[name][1])) return false;
  }
  return Object.keys(members).every((name) => value.has(name));
}

const sameJson = (one, other) => canonicalText(one) === canonicalText(other);
const mapOf = (members) => new Map(Object.entries(members));

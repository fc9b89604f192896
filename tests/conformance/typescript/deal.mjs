// A whole deal through any client: the same for both generations of the official one. The envelopes come signed.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

export const plan = JSON.parse(readFileSync(process.argv[4], "utf8"));
export const url = new URL(process.argv[2]);
export const mode = process.argv[3];
export const uri = `turret://conv/${plan.conv}`;

// What the client's user would type into a form.
export const answer = () => ({ action: "accept", content: { code: plan.code } });

export async function within(seconds, what, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: not within ${seconds} s`)), seconds * 1000);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

// `watch` has the client told of changes of `uri`; it gives { first }, a promise of the first one.
export async function deal(client, watch) {
  const names = new Set();
  let cursor;
  do {
    const page = await client.listTools(cursor ? { cursor } : {});
    page.tools.forEach((tool) => names.add(tool.name));
    cursor = page.nextCursor;
  } while (cursor);
  for (const name of ["send_call", "send_env", "read_conv", "desk_rings"]) assert(names.has(name), name);

  for (const step of plan.steps) await call(client, step);
  const { first } = await watch();
  await call(client, plan.last);
  await within(10, "the notification", first);

  const transcript = await call(client, { name: "read_conv", arguments: { conv: plan.conv } });
  assert.equal(transcript.state, "ended");
  assert.equal(transcript.rows.length, plan.envelopes);
  assert.equal(transcript.untrusted, true);

  const refused = await client.callTool({ name: "resolve_code", arguments: { code: "ZZZZ" } });
  assert.equal(refused.isError, true);
  assert.equal(refused.structuredContent.refusal.code, "unknown_desk");
  assert.match(refused.content[0].text, /^unknown_desk: /);

  const asked = await call(client, { name: "resolve_code", arguments: {} });
  assert.equal(asked.pk, plan.pk);

  const read = await client.readResource({ uri });
  assert.equal(JSON.parse(read.contents[0].text).rows.length, plan.envelopes);
  const prompts = await client.listPrompts();
  assert.equal(prompts.prompts.length, 3);
  const prompt = await client.getPrompt({ name: "answer_a_ring", arguments: { code: plan.code } });
  assert.match(prompt.messages[0].content.text, new RegExp(plan.code));
  const ref = { type: "ref/prompt", name: "answer_a_ring" };
  const completed = await client.complete({ ref, argument: { name: "code", value: "" } });
  assert(Array.isArray(completed.completion.values));
}

async function call(client, step) {
  const result = await client.callTool(step);
  assert(!result.isError, `${step.name}: ${JSON.stringify(result.content)}`);
  return result.structuredContent;
}

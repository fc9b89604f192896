// The client of @modelcontextprotocol/client, in the mode that is asked for: legacy, auto, or pinned to a revision.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { answer, deal, mode, uri, url } from "./deal.mjs";

const wanted = mode === "legacy" || mode === "auto" ? mode : { pin: mode };
const client = new Client(
  { name: "judge", version: "1" },
  { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: wanted } },
);
client.setRequestHandler("elicitation/create", async () => answer());
await client.connect(new StreamableHTTPClientTransport(url));
const revision = client.getNegotiatedProtocolVersion();

let subscription;
await deal(client, async () => {
  let changed;
  const first = new Promise((resolve) => (changed = resolve));
  client.setNotificationHandler("notifications/resources/updated", (told) => told.params.uri === uri && changed());
  if (mode === "legacy") await client.subscribeResource({ uri });
  else subscription = await client.listen({ resourceSubscriptions: [uri] });
  return { first };
});
await subscription?.close();
await client.close();
console.log(JSON.stringify({ revision }));

// The client of @modelcontextprotocol/sdk: the handshake era alone.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema, ResourceUpdatedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { answer, deal, uri, url } from "./deal.mjs";

const client = new Client({ name: "judge", version: "1" }, { capabilities: { elicitation: {} } });
client.setRequestHandler(ElicitRequestSchema, async () => answer());
await client.connect(new StreamableHTTPClientTransport(url));

await deal(client, async () => {
  let changed;
  const first = new Promise((resolve) => (changed = resolve));
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, (told) => told.params.uri === uri && changed());
  await client.subscribeResource({ uri });
  return { first };
});
await client.close();
console.log(JSON.stringify({ revision: client.transport?.protocolVersion ?? "handshake" }));

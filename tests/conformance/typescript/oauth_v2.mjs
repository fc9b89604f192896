import { Client, StreamableHTTPClientTransport, UnauthorizedError } from "@modelcontextprotocol/client";
import { signIn, url } from "./oauth.mjs";

await signIn((authProvider) => {
  const client = new Client({ name: "judge", version: "1" }, { versionNegotiation: { mode: "auto" } });
  const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider });
  return { client, done: client.connect(transport), finish: (said) => transport.finishAuth(said) };
}, UnauthorizedError);

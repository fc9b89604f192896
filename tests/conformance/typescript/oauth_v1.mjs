import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { signIn, url } from "./oauth.mjs";

await signIn((authProvider) => {
  const client = new Client({ name: "judge", version: "1" });
  const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider });
  return { client, done: client.connect(transport), finish: (said) => transport.finishAuth(said.get("code")) };
}, UnauthorizedError);

// A client that has nothing but the URL: says where its user must go, waits for the answer, and lists the tools.
import { createServer } from "node:http";

export const url = process.argv[2];
export const port = Number(process.argv[3]);
const back = `http://127.0.0.1:${port}/callback`;

export class Provider {
  redirectUrl = back;
  clientMetadata = { client_name: "judge", redirect_uris: [back], token_endpoint_auth_method: "none" };
  #kept = {};
  clientInformation() { return this.#kept.client; }
  saveClientInformation(client) { this.#kept.client = client; }
  tokens() { return this.#kept.tokens; }
  saveTokens(tokens) { this.#kept.tokens = tokens; }
  saveCodeVerifier(verifier) { this.#kept.verifier = verifier; }
  codeVerifier() { return this.#kept.verifier; }
  redirectToAuthorization(place) { console.log(String(place)); }
}

// `connect` makes a client and its transport, with the provider, and connects them.
export async function signIn(connect, Unauthorized) {
  const answered = new Promise((resolve) => {
    const server = createServer((request, response) => {
      response.end("ok");
      server.close();
      resolve(new URL(request.url, back).searchParams);
    }).listen(port, "127.0.0.1");
  });
  const provider = new Provider();
  const first = connect(provider);
  try {
    await first.done;
    throw new Error("connected without a token");
  } catch (fault) {
    if (!(fault instanceof Unauthorized)) throw fault;
  }
  const said = await answered;
  await first.finish(said);
  const second = connect(provider);
  await second.done;
  const { tools } = await second.client.listTools();
  if (!Array.isArray(tools)) throw new Error("no list of tools");
  await second.client.close();
  console.log(JSON.stringify({ tools: tools.length, scope: provider.tokens().scope }));
}

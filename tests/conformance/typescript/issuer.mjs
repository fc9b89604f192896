// oauth2-mock-server as an outside issuer: prints its URL and a token for each audience that is named.
import { OAuth2Server } from "oauth2-mock-server";

const server = new OAuth2Server();
await server.issuer.keys.generate("RS256");
await server.start(0, "127.0.0.1");
server.issuer.url = `http://127.0.0.1:${server.address().port}`;
console.log(JSON.stringify({ issuer: server.issuer.url }));
process.stdin.setEncoding("utf8");
for await (const line of process.stdin) {
  const claims = JSON.parse(line);
  const token = await server.issuer.buildToken({
    scopesOrTransform: (_, payload) => Object.assign(payload, claims),
    expiresIn: 300,
  });
  console.log(JSON.stringify({ token }));
}

// A certified OpenID provider on loopback, with pages of its own where people sign in, say yes and sign out.
//
// Takes {callback, client, secret} as JSON on the first line of its input and prints {issuer}. Each line after that makes
// it sign with a new key from then on, beside which the earlier ones stay known, and is answered with {keys}.
import { generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { Provider } from "oidc-provider";

/** What the provider remembers; one for all its lives, each of which has other keys. */
const rows = new Map();
class Shared {
  constructor(kind) {
    this.kind = kind;
  }
  key(id) {
    return `${this.kind}:${id}`;
  }
  async upsert(id, payload) {
    rows.set(this.key(id), payload);
  }
  async find(id) {
    return rows.get(this.key(id));
  }
  async findByUid(uid) {
    return [...rows.entries()].find(([key, row]) => key.startsWith(`${this.kind}:`) && row.uid === uid)?.[1];
  }
  async findByUserCode(code) {
    return [...rows.entries()].find(([key, row]) => key.startsWith(`${this.kind}:`) && row.userCode === code)?.[1];
  }
  async consume(id) {
    rows.get(this.key(id)).consumed = Math.floor(Date.now() / 1000);
  }
  async destroy(id) {
    rows.delete(this.key(id));
  }
  async revokeByGrantId(grant) {
    for (const [key, row] of rows) if (row.grantId === grant) rows.delete(key);
  }
}

const keys = [];
function addKey() {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  keys.unshift({ ...privateKey.export({ format: "jwk" }), kid: `k${keys.length + 1}`, alg: "ES256", use: "sig" });
}

function providerFor(issuer, { callback, client, secret }) {
  return new Provider(issuer, {
    adapter: Shared,
    jwks: { keys },
    cookies: { keys: ["only for tests"] },
    clients: [
      {
        client_id: client,
        client_secret: secret,
        grant_types: ["authorization_code"],
        response_types: ["code"],
        redirect_uris: [`${callback}/api/v1/sign-in/oidc/done`],
        post_logout_redirect_uris: [`${callback}/`],
        id_token_signed_response_alg: "ES256",
      },
    ],
    scopes: ["openid", "profile", "groups"],
    claims: { openid: ["sub"], profile: ["name"], groups: ["groups"] },
    conformIdTokenClaims: false,
    pkce: { required: () => true },
    features: { devInteractions: { enabled: true }, rpInitiatedLogout: { enabled: true } },
    findAccount: (_, id) => ({
      accountId: id,
      claims: async () => ({ sub: id, name: `${id} of the team`, groups: id === "stranger" ? [] : ["team"] }),
    }),
  });
}

let handle;
const server = createServer((request, answer) => handle(request, answer));
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;
let wanted;
for await (const line of createInterface({ input: process.stdin })) {
  const isFirst = wanted === undefined;
  wanted ??= JSON.parse(line);
  addKey();
  handle = providerFor(issuer, wanted).callback();
  console.log(JSON.stringify(isFirst ? { issuer } : { keys: keys.map(({ kid }) => kid) }));
}
server.closeAllConnections();
server.close();

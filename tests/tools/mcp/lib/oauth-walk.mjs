// Completes the OAuth flow with the official SDK's client: node oauth-walk.mjs PLATFORM_URL ACCESS_TOKEN_OF_THE_USER TUNNEL_ID
// CERTIFICATE (without .key and .crt). The script serves the client's metadata document, and gives the user's consent over REST in place
// of the dashboard page.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';

const [platform, userToken, tunnelId, certificate] = process.argv.slice(2);
const say = (text) => process.stdout.write(`${text}\n`);

/** Certificate for the server of the client's metadata document. The document's URL is the client id. */
const pair = { key: readFileSync(`${certificate}.key`), cert: readFileSync(`${certificate}.crt`) };
const documents = createServer(pair, (_request, response) => {
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ client_id: clientId, ...metadata }));
});
await new Promise((resolve) => documents.listen(0, '127.0.0.1', resolve));
const origin = `https://127.0.0.1:${documents.address().port}`;
const clientId = `${origin}/client.json`;
/** Redirect URI like that of an MCP host on the user's machine. It has no listener, because no browser is sent there. */
const redirectUrl = 'http://127.0.0.1:33418/callback';
const metadata = {
  client_name: 'A walk',
  redirect_uris: [redirectUrl],
  token_endpoint_auth_method: 'none',
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
};

/** The stored OAuth state of an MCP host for a user, and the URL to which it sends the browser. */
class Provider {
  clientMetadataUrl = clientId;
  redirectUrl = redirectUrl;
  clientMetadata = metadata;
  authorizationUrl = null;
  #client;
  #tokens;
  #verifier;
  #state;
  #discovered;
  discoveryState() {
    return this.#discovered;
  }
  saveDiscoveryState(discovered) {
    this.#discovered = discovered;
  }
  state() {
    this.#state = crypto.randomUUID();
    return this.#state;
  }
  get lastState() {
    return this.#state;
  }
  clientInformation() {
    return this.#client;
  }
  saveClientInformation(client) {
    this.#client = client;
  }
  tokens() {
    return this.#tokens;
  }
  saveTokens(tokens) {
    this.#tokens = tokens;
  }
  redirectToAuthorization(url) {
    this.authorizationUrl = url;
  }
  saveCodeVerifier(verifier) {
    this.#verifier = verifier;
  }
  codeVerifier() {
    return this.#verifier;
  }
}

const asUser = async (path, init = {}) => {
  const headers = { authorization: `Bearer ${userToken}`, 'content-type': 'application/json' };
  const response = await fetch(`${platform}${path}`, { ...init, headers });
  assert.ok(response.ok, `${path}: ${response.status}`);
  return response.status === 204 ? null : response.json();
};

/** Acts as the browser and the user, and returns the parameters of the redirect. */
const consent = async (provider, scopes) => {
  const answer = await fetch(provider.authorizationUrl, { redirect: 'manual' });
  assert.equal(answer.status, 303, await answer.text());
  const page = new URL(answer.headers.get('location'), platform);
  assert.equal(page.pathname, '/app/consent');
  const id = page.searchParams.get('request');
  const asked = await asUser(`/oauth/requests/${encodeURIComponent(id)}`);
  assert.equal(asked.client_id, clientId);
  assert.deepEqual(asked.scopes.toSorted(), scopes.toSorted());
  const decision = { method: 'POST', body: JSON.stringify({ allow: true }) };
  const { redirect_to } = await asUser(`/oauth/requests/${encodeURIComponent(id)}/decision`, decision);
  const redirect = new URL(redirect_to);
  assert.equal(redirect.origin + redirect.pathname, redirectUrl);
  assert.equal(redirect.searchParams.get('state'), provider.lastState);
  assert.equal(redirect.searchParams.get('iss'), new URL(platform).origin);
  return redirect.searchParams;
};

const transportFor = (provider) =>
  new StreamableHTTPClientTransport(new URL('/mcp', platform), { authProvider: provider });

/** Connects a client, with the consent that the first attempt requires. */
const connect = async (provider, scopes) => {
  const client = new Client({ name: 'walk', version: '1.0.0' });
  const first = transportFor(provider);
  await assert.rejects(client.connect(first), UnauthorizedError);
  await first.finishAuth(await consent(provider, scopes));
  const again = new Client({ name: 'walk', version: '1.0.0' });
  const transport = transportFor(provider);
  await again.connect(transport);
  return { client: again, transport };
};

const provider = new Provider();
const { client, transport } = await connect(provider, ['tunnels:read']);
const names = async () => (await client.listTools()).tools.map(({ name }) => name);
assert.deepEqual(await names(), ['get_status', 'get_tunnel', 'get_usage', 'list_keys', 'list_pools', 'list_tunnels']);
const listed = await client.callTool({ name: 'list_tunnels', arguments: {} });
assert.ok(listed.structuredContent.tunnels.some(({ tunnel_id }) => tunnel_id === tunnelId));
say('connected with tunnels:read: the tools of that scope, and no other');

// The access token is made invalid, like an expired token. The client must refresh it without the user.
const before = provider.tokens();
provider.saveTokens({ ...before, access_token: `${before.access_token}x` });
provider.authorizationUrl = null;
assert.ok((await client.callTool({ name: 'get_status', arguments: {} })).structuredContent);
assert.notEqual(provider.tokens().refresh_token, before.refresh_token);
assert.equal(provider.authorizationUrl, null);
say('refreshed, with a new refresh token and without the user');

// A tool outside the granted scopes: the client learns the missing scope and requests the user's consent.
const call = () => client.callTool({ name: 'list_requests', arguments: { tunnel: tunnelId } });
await assert.rejects(call(), UnauthorizedError);
assert.ok(provider.authorizationUrl, 'no step-up was begun');
const wanted = provider.authorizationUrl.searchParams.get('scope').split(' ');
assert.ok(wanted.includes('requests:read'), wanted.join(' '));
await transport.finishAuth(await consent(provider, wanted));
assert.ok((await call()).structuredContent.requests.length > 0);
say(`stepped up to ${provider.tokens().scope}`);

// The user disconnects the app: within 2 s its tokens are rejected, including the refresh token.
const { grants } = await asUser('/oauth/grants');
assert.ok(grants.length > 0 && grants.every(({ client_id }) => client_id === clientId));
for (const { id } of grants) await asUser(`/oauth/grants/${id}`, { method: 'DELETE' });
const giveUpAt = Date.now() + 3000;
const status = async () => {
  const authorization = `Bearer ${provider.tokens().access_token}`;
  const headers = { authorization, 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });
  return (await fetch(`${platform}/mcp`, { method: 'POST', headers, body })).status;
};
while ((await status()) !== 401) assert.ok(Date.now() < giveUpAt, 'a disconnected app still comes in');
const form = { grant_type: 'refresh_token', client_id: clientId, refresh_token: provider.tokens().refresh_token };
const refused = await fetch(`${platform}/oauth/token`, { method: 'POST', body: new URLSearchParams(form) });
assert.deepEqual([refused.status, (await refused.json()).error], [400, 'invalid_grant']);
say('disconnected: its access token and its refresh token are refused');
await client.close();
documents.close();
documents.closeAllConnections();

// An MCP host that is written with the official SDK completes the whole flow to /mcp.
import {
  Client,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  type StoredOAuthTokens,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from '@modelcontextprotocol/client';
import { expect, it } from 'vitest';
import type { Person } from '../platform/platform-harness.fixture.ts';
import { type McpHarness, RETURNS_TO } from './mcp-harness.fixture.ts';
import { row } from './rows.fixture.ts';

/** The MCP host's stored state, and the browser that it opens. */
class ModelHost {
  tokens: StoredOAuthTokens | undefined;
  /** The URL to which the browser returned; null if no browser was opened. */
  back: URL | null = null;
  readonly #harness: McpHarness;
  readonly #provider: OAuthClientProvider;

  constructor(harness: McpHarness, person: Person) {
    this.#harness = harness;
    let [verifier, discovered]: [string, OAuthDiscoveryState | undefined] = ['', undefined];
    this.#provider = {
      redirectUrl: RETURNS_TO,
      clientMetadata: { redirect_uris: [RETURNS_TO], token_endpoint_auth_method: 'none' },
      clientInformation: () => ({ client_id: harness.clientId }),
      tokens: () => this.tokens,
      saveTokens: (tokens) => void (this.tokens = tokens),
      codeVerifier: () => verifier,
      saveCodeVerifier: (made) => void (verifier = made),
      discoveryState: () => discovered,
      saveDiscoveryState: (state) => void (discovered = state),
      redirectToAuthorization: async ({ searchParams }) =>
        void (this.back = await harness.decide(person, Object.fromEntries(searchParams))),
    };
  }

  /** Runs the work with a client, at once or after the user has consented. */
  async withClient<T>(work: (client: Client) => Promise<T>): Promise<T> {
    const { issuer, resource, url: here } = this.#harness;
    // Links of this stack contain the configured port, whereas the stack listens on a random port.
    const fetchHere = (url: string | URL, init?: RequestInit): Promise<Response> =>
      fetch(String(url).replace(issuer, here), init);
    const transport = new StreamableHTTPClientTransport(new URL(resource), {
      authProvider: this.#provider,
      fetch: fetchHere,
    });
    const client = new Client({ name: 'host', version: '1' });
    const askedBefore = this.back;
    try {
      await client.connect(transport);
      return await work(client);
    } catch (error) {
      if (!(error instanceof UnauthorizedError) || this.back === null || this.back === askedBefore) throw error;
      await transport.finishAuth(this.back.searchParams);
      return await this.withClient(work);
    } finally {
      await client.close();
    }
  }
}

export const sdkRows = (harness: McpHarness): void => {
  it(row('Platform MCP', 5, 'the SDK is connected, comes back with its refresh token, and asks for more'), async () => {
    const host = new ModelHost(harness, await harness.person());
    const { tools } = await host.withClient((client) => client.listTools());
    expect(tools.map(({ name }) => name)).toContain('list_tunnels');
    expect(host.back?.searchParams.get('code')).toEqual(expect.any(String));
    const { tokens } = host;
    // Simulates an access token that has expired after 15 minutes.
    host.tokens = { ...(tokens ?? { token_type: 'Bearer' }), access_token: 'run-out' };
    host.back = null;
    const status = await host.withClient((client) => client.callTool({ name: 'get_status', arguments: {} }));
    expect([status.isError === true, host.back, host.tokens.scope]).toEqual([false, null, 'tunnels:read']);
    expect(host.tokens.refresh_token).not.toBe(tokens?.refresh_token);
    const close = { name: 'close_tunnel', arguments: { tunnel: 'tun_unknown' } };
    const closed = await host.withClient((client) => client.callTool(close));
    expect([JSON.stringify(closed.content), host.tokens.scope]).toEqual([
      expect.stringContaining('TUNNEL_UNKNOWN'),
      'tunnels:read tunnels:close',
    ]);
  });
};

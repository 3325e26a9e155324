// An app that requests access to an account, like an MCP host: its metadata document, its authorization request, and the answers it
// receives.
import { createHash, randomBytes } from 'node:crypto';
import { eventually } from '@tunnel/testkit';
import type { Harness } from '../system/harness.fixture.ts';
import { startWeb } from '../system/http-tunnels.fixture.ts';
import { type Account, ask } from './account.fixture.ts';
import type { StackAddress } from './own-stack.fixture.ts';

interface Tokens {
  readonly access_token: string;
  readonly refresh_token: string;
  readonly scope: string;
}

export const ALL_SCOPES = 'tunnels:read requests:read requests:replay tunnels:close';

export class ConnectingApp {
  /** Host of the app, which the consent page shows before the app's name. */
  readonly host: string;
  readonly #stack: StackAddress;
  readonly #verifier = randomBytes(32).toString('base64url');
  readonly #answers: URLSearchParams[] = [];

  constructor(stack: StackAddress, port: number) {
    this.#stack = stack;
    this.host = `127.0.0.1:${port}`;
  }

  /** Starts the app's web server, which stops with the harness. */
  static async start(harness: Harness, stack: StackAddress, name = 'Example Assistant'): Promise<ConnectingApp> {
    const web = harness.use(
      await startWeb(({ url = '', headers: { host } }, response) => {
        const { pathname, searchParams } = new URL(url, `http://${host}`);
        if (pathname === '/callback') app.#answers.push(searchParams);
        const isDocument = pathname === '/client.json';
        response.writeHead(200, { 'content-type': isDocument ? 'application/json' : 'text/html' });
        response.end(
          isDocument ? JSON.stringify(app.#document(name)) : '<!doctype html><title>back</title>Welcome back',
        );
      }),
    );
    const app = new ConnectingApp(stack, web.port);
    return app;
  }

  get #clientId(): string {
    return `http://${this.host}/client.json`;
  }

  get #redirectUri(): string {
    return `http://${this.host}/callback`;
  }

  #document(name: string): object {
    const client_id = this.#clientId;
    const redirect_uris = [this.#redirectUri];
    return { client_id, client_name: name, redirect_uris, token_endpoint_auth_method: 'none' };
  }

  /** Returns the authorization URL to which the app sends the browser. */
  async authorizeUrl(scope = ALL_SCOPES): Promise<string> {
    const { resource } = await ask<{ resource: string }>(this.#stack, '/.well-known/oauth-protected-resource/mcp');
    const query = new URLSearchParams({
      response_type: 'code',
      client_id: this.#clientId,
      redirect_uri: this.#redirectUri,
      resource,
      scope,
      code_challenge: createHash('sha256').update(this.#verifier).digest('base64url'),
      code_challenge_method: 'S256',
      state: 'as sent',
    });
    return `${this.#stack.run.platform_url}/oauth/authorize?${query.toString()}`;
  }

  /** Requests access without a browser, and returns the id of the pending request. */
  async request(scope = ALL_SCOPES): Promise<string> {
    const response = await fetch(await this.authorizeUrl(scope), { redirect: 'manual' });
    const location = new URL(response.headers.get('location') ?? '', this.#stack.run.platform_url);
    const id = location.searchParams.get('request');
    if (id === null) throw new Error(`no request: ${response.status} ${location.href} ${await response.text()}`);
    return id;
  }

  /** Returns the parameters of the browser's latest return to the app. */
  answer(): Promise<URLSearchParams> {
    return eventually(
      () => {
        const last = this.#answers.at(-1);
        if (last === undefined) throw new Error('nobody came back');
        return last;
      },
      { timeoutMs: 20_000 },
    );
  }

  redeem(code: string): Promise<Tokens> {
    const proof = { redirect_uri: this.#redirectUri, code_verifier: this.#verifier };
    return this.#token({ grant_type: 'authorization_code', code, ...proof });
  }

  refresh(refresh_token: string): Promise<Tokens> {
    return this.#token({ grant_type: 'refresh_token', refresh_token });
  }

  /** Completes the whole flow with the account's consent, and returns the tokens. */
  async connect(account: Account): Promise<Tokens> {
    const id = await this.request();
    const decided = await account.post<{ redirect_to: string }>(`/oauth/requests/${id}/decision`, { allow: true });
    return this.redeem(new URL(decided.redirect_to).searchParams.get('code') ?? '');
  }

  async #token(fields: Readonly<Record<string, string>>): Promise<Tokens> {
    const body = new URLSearchParams({ ...fields, client_id: this.#clientId });
    const response = await fetch(`${this.#stack.run.platform_url}/oauth/token`, { method: 'POST', body });
    const read = (await response.json()) as Tokens & { error?: string };
    if (!response.ok) throw new Error(`${response.status} ${read.error}`);
    return read;
  }
}

// A server with platform for MCP tests: messages to /mcp, and the OAuth flow of an app.
import { hash, randomBytes } from 'node:crypto';
import type { OauthTokens } from '@tunnel/contract';
import { expect } from 'vitest';
import type { ToolResult } from '../../system/mcp-program.fixture.ts';
import { type Person, PlatformHarness } from '../platform/platform-harness.fixture.ts';

const CLIENT_ID = `client_${'a'.repeat(20)}`;
/** A redirect URI that is registered without a port, so that any loopback port is accepted. */
export const RETURNS_TO = 'http://127.0.0.1:33418/callback';

export interface McpAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly result: Record<string, unknown>;
}

export interface TokenAnswer extends OauthTokens {
  readonly error?: string;
  readonly error_description?: string;
}

export class McpHarness extends PlatformHarness {
  readonly clientId = CLIENT_ID;
  /** URLs from the metadata documents. */
  resource = '';
  issuer = '';

  async begin(): Promise<void> {
    const client = { id: CLIENT_ID, name: 'Host', redirect_uris: 'http://127.0.0.1/callback' };
    await this.db.insertInto('oauth_clients').values(client).execute();
    const { body } = await this.get('/.well-known/oauth-protected-resource/mcp');
    const { resource, authorization_servers } = body as { resource: string; authorization_servers: string[] };
    [this.resource, this.issuer] = [resource, authorization_servers[0] ?? ''];
  }

  async mcp(bearer: string | null, message: object, headers: Record<string, string> = {}): Promise<McpAnswer> {
    const answer = await fetch(`${this.url}/mcp`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...(bearer === null ? {} : { authorization: `Bearer ${bearer}` }),
        ...headers,
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...message }),
    });
    const text = await answer.text();
    const { result = {} } = (text.startsWith('{') ? JSON.parse(text) : {}) as { result?: Record<string, unknown> };
    return { status: answer.status, headers: answer.headers, text, result };
  }

  async tool(bearer: string, name: string, args: object = {}): Promise<ToolResult> {
    const answer = await this.mcp(bearer, { method: 'tools/call', params: { name, arguments: args } });
    expect([name, answer.status]).toEqual([name, 200]);
    return answer.result as unknown as ToolResult;
  }

  /** Calls a tool and returns its structured result. A failure throws with the complete error text. */
  async found(bearer: string, name: string, args: object = {}): Promise<Record<string, unknown>> {
    const { structuredContent, content } = await this.tool(bearer, name, args);
    if (structuredContent === undefined) throw new Error(content[0]?.text);
    expect(JSON.parse(content[0]?.text ?? '')).toEqual(structuredContent);
    return structuredContent;
  }

  authorize(fields: Record<string, string>) {
    return this.get(`/oauth/authorize?${new URLSearchParams(fields).toString()}`);
  }

  /** Returns a valid authorization request with the verifier of its code challenge. */
  asking(fields: Record<string, string> = {}): { query: Record<string, string>; verifier: string } {
    const verifier = randomBytes(32).toString('base64url');
    const query = {
      response_type: 'code',
      client_id: CLIENT_ID,
      redirect_uri: RETURNS_TO,
      state: 'st',
      resource: this.resource,
      code_challenge: hash('sha256', verifier, 'base64url'),
      code_challenge_method: 'S256',
      ...fields,
    };
    return { query, verifier };
  }

  /** Starts an authorization and returns the request id from the redirect. */
  async requestOf(query: Record<string, string>): Promise<string> {
    const { status, headers } = await this.authorize(query);
    const id = /^\/app\/consent\?request=(\w+)$/.exec(headers.get('location') ?? '')?.[1] ?? '';
    expect([status, id]).toEqual([303, expect.stringMatching(/./)]);
    return id;
  }

  async decide(person: Person, query: Record<string, string>, decision: object = { allow: true }): Promise<URL> {
    const id = await this.requestOf(query);
    const { body } = await this.post(`/oauth/requests/${id}/decision`, decision, person.token);
    const back = new URL((body as { redirect_to: string }).redirect_to);
    expect([back.origin + back.pathname, back.searchParams.get('iss')]).toEqual([RETURNS_TO, this.issuer]);
    return back;
  }

  /** Grants a scope and returns the token request with the resulting code. */
  async consent(person: Person, scope: string): Promise<Record<string, string>> {
    const { query, verifier } = this.asking({ scope });
    const back = await this.decide(person, query);
    const code = back.searchParams.get('code') ?? '';
    return {
      grant_type: 'authorization_code',
      code,
      redirect_uri: RETURNS_TO,
      client_id: CLIENT_ID,
      code_verifier: verifier,
      resource: this.resource,
    };
  }

  form(path: string, fields: Record<string, string>): Promise<Response> {
    return fetch(this.url + path, { method: 'POST', body: new URLSearchParams(fields) });
  }

  async token(fields: Record<string, string>): Promise<[number, TokenAnswer]> {
    const answer = await this.form('/oauth/token', fields);
    return [answer.status, (await answer.json()) as TokenAnswer];
  }

  async connected(person: Person, scope: string): Promise<OauthTokens> {
    return (await this.token(await this.consent(person, scope)))[1];
  }

  refreshed(refresh_token: string): Promise<[number, TokenAnswer]> {
    return this.token({ grant_type: 'refresh_token', refresh_token, client_id: CLIENT_ID });
  }
}

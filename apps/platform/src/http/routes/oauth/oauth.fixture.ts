// Authorization server on top of the accounts fixture, with clients that received grants. For tests only.
import { hash } from 'node:crypto';
import type { OauthScope, OauthTokens } from '@tunnel/contract';
import { randomToken, sha256Hex } from '@tunnel/runtime';
import { decideOauthRequest, newRequestId } from '../../../services/oauth/decide-request.ts';
import { GrantCache } from '../../../services/oauth/grants.ts';
import { SignedMcpTokens } from '../../../services/oauth/mcp-tokens.ts';
import { oauthAddresses } from '../../../services/oauth/oauth-addresses.ts';
import { type AccountsFixture, type AccountsFixtureOptions, openAccounts } from '../../auth/accounts.fixture.ts';
import { AttemptLimits } from '../../auth/attempt-limits.ts';
import { addOauthMetadataRoutes } from './oauth-metadata-routes.ts';
import { addOauthTokenRoutes } from './oauth-token-routes.ts';

export const CLIENT_ID = 'https://app.example/client.json';
export const REDIRECT_URI = 'http://127.0.0.1:33418/callback';
export const RESOURCE = 'http://localhost:8080/mcp';

export type FormValues = Readonly<Record<string, string | undefined>>;

/** An authorization code given to a client, with the data to redeem it. */
export interface GivenCode {
  readonly grantId: string;
  /** Complete form that redeems the code. */
  readonly form: FormValues;
}

export class OauthFixture {
  readonly accounts: AccountsFixture;
  /** Settings of `[platform.mcp]`. */
  readonly mcp = { enabled: true, calls_per_minute: 120 };
  readonly mcpTokens: SignedMcpTokens;

  constructor(accounts: AccountsFixture) {
    const { context, signingKeys: keys, app } = accounts;
    const { db, clock, users, settings } = context;
    this.accounts = accounts;
    const addresses = oauthAddresses(settings.public_url);
    const grants = new GrantCache({ db, clock });
    this.mcpTokens = new SignedMcpTokens({ keys, clock, addresses, users, grants });
    const limits = new AttemptLimits(settings.limits, () => clock.monotonic());
    addOauthMetadataRoutes(app, { addresses, hasMcp: true });
    addOauthTokenRoutes(app, {
      ...context,
      settings: { ...settings, mcp: this.mcp },
      grants,
      mcpTokens: this.mcpTokens,
      limits,
    });
  }

  async userId(email: string): Promise<string> {
    return (await this.#user(email)).id;
  }

  #user(email: string): Promise<{ id: string; epoch: number }> {
    const row = this.accounts.database.db.selectFrom('users').select(['id', 'epoch']).where('email', '=', email);
    return row.executeTakeFirstOrThrow();
  }

  /** Approves an authorization request of a client as the user, starting from a request stored after its checks. */
  async allow(
    email: string,
    { scope = 'tunnels:read requests:read', clientId = CLIENT_ID }: { scope?: string; clientId?: string } = {},
  ): Promise<GivenCode> {
    const { context, clock, database } = this.accounts;
    const id = newRequestId();
    const verifier = randomToken(32);
    const client = { client_id: clientId, client_host: 'app.example', client_name: 'App' };
    const asked = { redirect_uri: REDIRECT_URI, code_challenge: hash('sha256', verifier, 'base64url') };
    await database.db
      .insertInto('oauth_requests')
      .values({ id, ...client, ...asked, scope, resource: RESOURCE, expires_at: new Date(clock.now() + 1000) })
      .execute();
    const addresses = oauthAddresses(context.settings.public_url);
    const { id: userId, epoch } = await this.#user(email);
    const actor = { kind: 'user', userId, epoch } as const;
    const decided = await decideOauthRequest({ ...context, addresses }, actor, { id, decision: { allow: true } });
    const code = new URL(decided.redirect_to).searchParams.get('code') ?? '';
    const { grant_id: grantId } = await database.db
      .selectFrom('oauth_codes')
      .select('grant_id')
      .where('code_hash', '=', sha256Hex(code))
      .executeTakeFirstOrThrow();
    const form = { grant_type: 'authorization_code', code, client_id: clientId, redirect_uri: REDIRECT_URI };
    return { grantId, form: { ...form, code_verifier: verifier } };
  }

  send(path: string, values: FormValues): Promise<Response> {
    const form = new URLSearchParams();
    for (const [name, value] of Object.entries(values)) if (value !== undefined) form.set(name, value);
    return this.sendRaw(path, form.toString());
  }

  async sendRaw(path: string, body: string, type = 'application/x-www-form-urlencoded'): Promise<Response> {
    const headers = { 'content-type': type };
    const incoming = { url: path, headers: { host: 'localhost:8080', ...headers }, socket: {} };
    return this.accounts.app.request(path, { method: 'POST', headers, body }, { incoming });
  }

  token(values: FormValues): Promise<Response> {
    return this.send('/oauth/token', values);
  }

  /** Returns the tokens for a valid form. Throws if the request is refused. */
  async tokens(values: FormValues): Promise<OauthTokens> {
    const answer = await this.token(values);
    if (answer.status !== 200) throw new Error(`refused: ${await answer.text()}`);
    return (await answer.json()) as OauthTokens;
  }

  refreshForm(refresh_token: string, more: FormValues = {}): FormValues {
    return { grant_type: 'refresh_token', refresh_token, client_id: CLIENT_ID, ...more };
  }

  /** Returns the scopes with which /mcp accepts the token, or null if /mcp rejects the token. */
  async scopesAtMcp(token: string): Promise<readonly OauthScope[] | null> {
    return (await this.mcpTokens.check(token))?.scopes ?? null;
  }

  close(): Promise<void> {
    return this.accounts.close();
  }
}

/** Returns the status and the error code of RFC 6749. */
export const refusalOf = async (answer: Response): Promise<[number, string]> => [
  answer.status,
  ((await answer.json()) as { error: string }).error,
];

export const openOauth = async (options: AccountsFixtureOptions = {}): Promise<OauthFixture> =>
  new OauthFixture(await openAccounts(options));

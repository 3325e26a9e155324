import { describe, expect, it } from 'vitest';
import {
  type CodeFacts,
  decideCode,
  decideGrantRefresh,
  type GrantFacts,
  type GrantTokenFacts,
  isGrantAlive,
  type ShownCode,
  type ShownGrantToken,
} from './grant-life.rules.ts';

const NOW = 1_000_000;
const RULES = { graceMs: 10_000, graceUses: 2 };
const GRANT: GrantFacts = {
  clientId: 'https://app.example/client.json',
  resource: 'https://platform.example/mcp',
  scopes: ['tunnels:read', 'requests:read'],
  revoked: false,
  epoch: 3,
  user: { status: 'active', epoch: 3 },
};
const CODE: CodeFacts = { grant: GRANT, redirectUri: 'http://127.0.0.1:1/cb', expiresAt: NOW + 60_000, used: false };
const SHOWN_CODE: ShownCode = {
  clientId: GRANT.clientId,
  redirectUri: CODE.redirectUri,
  verifierMatches: true,
  resource: GRANT.resource,
};
const TOKEN: GrantTokenFacts = { grant: GRANT, expiresAt: NOW + 1000, rotatedAt: null, graceUses: 0 };
const SHOWN_TOKEN: ShownGrantToken = { clientId: GRANT.clientId, scopes: null, resource: null };

const ENDED: readonly [string, Partial<GrantFacts>, string][] = [
  ['revoked', { revoked: true }, 'has ended'],
  ['of before a new password', { user: { status: 'active', epoch: 4 } }, 'has ended'],
  ['of a suspended account', { user: { status: 'suspended', epoch: 4 } }, 'is suspended'],
];

describe('an OAuth grant', () => {
  it.each(ENDED)('that is %s has ended', (_what, change) => {
    expect(isGrantAlive(GRANT)).toBe(true);
    expect(isGrantAlive({ ...GRANT, ...change })).toBe(false);
  });
});

describe('an authorization code', () => {
  const decide = (code: CodeFacts, shown: Partial<ShownCode> = {}, now = NOW) =>
    decideCode(code, { ...SHOWN_CODE, ...shown }, now);

  it('is redeemed by its own client, with or without the resource', () => {
    expect(decide(CODE)).toEqual({ kind: 'redeem' });
    expect(decide(CODE, { resource: null })).toEqual({ kind: 'redeem' });
    expect(decide(CODE, {}, CODE.expiresAt - 1)).toEqual({ kind: 'redeem' });
  });

  it.each([
    ['another client', { clientId: 'https://evil.example/client.json' }, 'another client'],
    ['another redirect URI', { redirectUri: 'http://127.0.0.1:2/cb' }, 'redirect_uri'],
    ['another verifier', { verifierMatches: false }, 'code_verifier'],
  ])('is refused for %s', (_what, shown, words) => {
    const refusal = { kind: 'refuse', error: 'invalid_grant', reason: expect.stringContaining(words) };
    expect(decide(CODE, shown)).toEqual(refusal);
  });

  it('is refused for another resource with invalid_target', () => {
    expect(decide(CODE, { resource: 'https://other.example/mcp' })).toMatchObject({ error: 'invalid_target' });
  });

  it('is refused after a minute', () => {
    expect(decide(CODE, {}, CODE.expiresAt)).toMatchObject({ reason: expect.stringContaining('expired') });
  });

  it.each(ENDED)('is refused if its grant is %s', (_what, change, words) => {
    const refusal = { error: 'invalid_grant', reason: expect.stringContaining(words) };
    expect(decide({ ...CODE, grant: { ...GRANT, ...change } })).toMatchObject(refusal);
  });

  it('that is reused ends the grant, whatever the client and however late', () => {
    const used = { ...CODE, used: true };
    expect(decide(used)).toEqual({ kind: 'reuse' });
    expect(decide(used, { clientId: 'x', verifierMatches: false }, NOW * 100)).toEqual({ kind: 'reuse' });
  });
});

describe('an OAuth refresh token', () => {
  const decide = (token: GrantTokenFacts, shown: Partial<ShownGrantToken> = {}, now = NOW) =>
    decideGrantRefresh(token, { ...SHOWN_TOKEN, ...shown }, now, RULES);

  it('gives all granted scopes, or a requested part of them', () => {
    expect(decide(TOKEN)).toEqual({ kind: 'rotate', again: false, scopes: GRANT.scopes });
    const narrowed = decide(TOKEN, { scopes: ['requests:read', 'requests:read'] });
    expect(narrowed).toEqual({ kind: 'rotate', again: false, scopes: ['requests:read'] });
  });

  it('is refused for further scopes or another resource', () => {
    const refusal = { error: 'invalid_scope', reason: expect.stringContaining('only tunnels:read requests:read') };
    expect(decide(TOKEN, { scopes: ['tunnels:read', 'tunnels:close'] })).toMatchObject(refusal);
    expect(decide(TOKEN, { resource: 'https://other.example/mcp' })).toMatchObject({ error: 'invalid_target' });
  });

  it('is refused for another client, even if rotated, so that strangers cannot end a grant', () => {
    const rotated = { ...TOKEN, rotatedAt: NOW - 60_000 };
    for (const token of [TOKEN, rotated]) {
      expect(decide(token, { clientId: 'x' })).toMatchObject({ kind: 'refuse', error: 'invalid_grant' });
    }
  });

  it('that was rotated works within its grace time and uses, then ends the grant', () => {
    const rotated = { ...TOKEN, rotatedAt: NOW - RULES.graceMs };
    expect(decide(rotated)).toMatchObject({ kind: 'rotate', again: true });
    expect(decide(rotated, {}, NOW + 1)).toEqual({ kind: 'reuse' });
    expect(decide({ ...rotated, graceUses: 2 })).toEqual({ kind: 'reuse' });
    // The reuse counts whatever scopes the client requests.
    expect(decide(rotated, { scopes: ['tunnels:close'] }, NOW + 1)).toEqual({ kind: 'reuse' });
  });

  it('is refused once expired', () => {
    expect(decide(TOKEN, {}, TOKEN.expiresAt)).toMatchObject({ error: 'invalid_grant' });
  });

  it.each(ENDED)('is refused if its grant is %s', (_what, change, words) => {
    const token = { ...TOKEN, grant: { ...GRANT, ...change } };
    expect(decide(token)).toMatchObject({ error: 'invalid_grant', reason: expect.stringContaining(words) });
  });
});

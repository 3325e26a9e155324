// Random histories of grants with thieves: in any order of operations, nothing is given twice or after the end of a grant.
import { randomCases } from '@tunnel/testkit';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { decideCode, decideGrantRefresh, type GrantFacts, isGrantAlive } from './grant-life.rules.ts';

const RULES = { graceMs: 10_000, graceUses: 2 };
const CODE_MS = 60_000;
const TOKEN_MS = 300_000;
const CLIENTS = ['one', 'two'] as const;
const SCOPES = ['tunnels:read', 'requests:read', 'tunnels:close'] as const;

type Move =
  | { readonly do: 'allow'; readonly client: number; readonly scopes: number }
  | { readonly do: 'code'; readonly which: number; readonly client: number; readonly verifier: boolean }
  | { readonly do: 'refresh'; readonly which: number; readonly client: number; readonly scope: number | null }
  | { readonly do: 'revoke'; readonly which: number }
  | { readonly do: 'new-password' | 'suspend' | 'restore' };

const which = fc.oneof({ weight: 2, arbitrary: fc.constant(0) }, fc.nat(20));
const client = fc.oneof({ weight: 5, arbitrary: fc.constant(0) }, fc.constant(1));
const verifier = fc.oneof({ weight: 5, arbitrary: fc.constant(true) }, fc.constant(false));
const scope = fc.option(fc.nat(SCOPES.length - 1), { freq: 3 });
const moves: fc.Arbitrary<Move> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('allow' as const), client, scopes: fc.integer({ min: 1, max: 3 }) }),
  },
  { weight: 8, arbitrary: fc.record({ do: fc.constant('code' as const), which, client, verifier }) },
  { weight: 12, arbitrary: fc.record({ do: fc.constant('refresh' as const), which, client, scope }) },
  fc.record({ do: fc.constant('revoke' as const), which }),
  fc.record({ do: fc.constantFrom('new-password' as const, 'suspend' as const) }),
  { weight: 3, arbitrary: fc.record({ do: fc.constant('restore' as const) }) },
);
const steps = fc.array(
  fc.record({ move: moves, elapsedMs: fc.oneof({ weight: 5, arbitrary: fc.nat(5000) }, fc.nat(100_000)) }),
  {
    maxLength: 80,
    size: 'max',
  },
);

interface Grant {
  readonly clientId: string;
  readonly scopes: readonly string[];
  readonly epoch: number;
  revoked: boolean;
  /** True once the grant was seen dead; from then on the grant must never give anything again. */
  wasDead: boolean;
}

interface Code {
  readonly grant: Grant;
  readonly expiresAt: number;
  used: boolean;
}

interface Token {
  readonly grant: Grant;
  readonly expiresAt: number;
  rotatedAt: number | null;
  graceUses: number;
  successors: number;
}

/** Stores the data of the database tables, performs the moves, and checks that every issued token was allowed. */
class Ledger {
  readonly user = { status: 'active' as 'active' | 'suspended', epoch: 0 };
  readonly grants: Grant[] = [];
  readonly codes: Code[] = [];
  readonly tokens: Token[] = [];
  given = 0;
  now = 0;

  take(move: Move): void {
    switch (move.do) {
      case 'allow':
        return this.#allow(CLIENTS[move.client] ?? '', SCOPES.slice(0, move.scopes));
      case 'code':
        return this.#show(pick(this.codes, move.which), CLIENTS[move.client] ?? '', move.verifier);
      case 'refresh':
        return this.#refresh(pick(this.tokens, move.which), CLIENTS[move.client] ?? '', move.scope);
      case 'revoke':
        return this.#end(pick(this.grants, move.which));
      case 'restore':
        this.user.status = 'active';
        return;
      default:
        if (move.do === 'suspend') this.user.status = 'suspended';
        this.user.epoch += 1;
    }
  }

  /** Checks that dead grants stay dead. */
  look(): void {
    for (const grant of this.grants) {
      const alive = isGrantAlive(this.#facts(grant));
      expect(alive && grant.wasDead).toBe(false);
      grant.wasDead = !alive;
    }
  }

  #facts(grant: Grant): GrantFacts {
    return { ...grant, resource: 'mcp', user: { ...this.user } };
  }

  #allow(clientId: string, scopes: readonly string[]): void {
    if (this.user.status !== 'active') return;
    const grant = { clientId, scopes, epoch: this.user.epoch, revoked: false, wasDead: false };
    this.grants.push(grant);
    this.codes.push({ grant, expiresAt: this.now + CODE_MS, used: false });
  }

  #end(grant: Grant | undefined): void {
    if (grant !== undefined) grant.revoked = true;
  }

  #show(code: Code | undefined, clientId: string, verifierMatches: boolean): void {
    if (code === undefined) return;
    const facts = { grant: this.#facts(code.grant), redirectUri: 'cb', expiresAt: code.expiresAt, used: code.used };
    const shown = { clientId, redirectUri: 'cb', verifierMatches, resource: null };
    const decision = decideCode(facts, shown, this.now);
    if (decision.kind === 'reuse') this.#end(code.grant);
    if (code.used) expect(decision.kind).toBe('reuse');
    if (decision.kind !== 'redeem') return;
    expect([verifierMatches, clientId, code.used]).toEqual([true, code.grant.clientId, false]);
    expect(this.now).toBeLessThan(code.expiresAt);
    code.used = true;
    this.#give(code.grant, code.grant.scopes);
  }

  #refresh(token: Token | undefined, clientId: string, asked: number | null): void {
    if (token === undefined) return;
    const scopes = asked === null ? null : [SCOPES[asked] ?? ''];
    const facts = { ...token, grant: this.#facts(token.grant) };
    const decision = decideGrantRefresh(facts, { clientId, scopes, resource: null }, this.now, RULES);
    if (decision.kind === 'reuse') {
      expect([clientId, token.rotatedAt]).toEqual([token.grant.clientId, expect.any(Number)]);
      this.#end(token.grant);
    }
    if (decision.kind !== 'rotate') return;
    expect([clientId, decision.again]).toEqual([token.grant.clientId, token.rotatedAt !== null]);
    expect(this.now).toBeLessThan(token.expiresAt);
    if (decision.again) token.graceUses += 1;
    else token.rotatedAt = this.now;
    token.successors += 1;
    expect(token.successors).toBeLessThanOrEqual(1 + RULES.graceUses);
    expect(this.now - (token.rotatedAt ?? 0)).toBeLessThanOrEqual(RULES.graceMs);
    this.#give(token.grant, decision.scopes);
  }

  /** Issues a token. Fails for a dead grant and for scopes beyond the grant. */
  #give(grant: Grant, scopes: readonly string[]): void {
    expect([isGrantAlive(this.#facts(grant)), grant.wasDead]).toEqual([true, false]);
    expect(scopes.length).toBeGreaterThan(0);
    for (const each of scopes) expect(grant.scopes).toContain(each);
    this.tokens.push({ grant, expiresAt: this.now + TOKEN_MS, rotatedAt: null, graceUses: 0, successors: 0 });
    this.given += 1;
  }
}

/** Picks an item counted from the end: 0 is the newest item, so that chains of tokens grow. */
const pick = <T>(list: readonly T[], nth: number): T | undefined => list.at(-1 - (nth % Math.max(1, list.length)));

it('any sequence of grant operations gives nothing twice, to other clients, beyond the scopes, or after the end', () => {
  let given = 0;
  fc.assert(
    fc.property(steps, (all) => {
      const ledger = new Ledger();
      for (const step of all) {
        ledger.now += step.elapsedMs;
        ledger.take(step.move);
        ledger.look();
      }
      given += ledger.given;
    }),
    { numRuns: 150 },
  );
  // Guards against a model that refuses every operation and would thus pass the remaining checks.
  expect(given).toBeGreaterThan(randomCases(100));
});

import { endpointKey, type LeasedEndpoint, type Owner } from '@tunnel/rules/tunnels';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AwaitedEndpoints, type EndpointClaim, isAwaited, type LastRun } from './awaited-endpoints.rules.ts';

const ALICE: Owner = { kind: 'account', accountId: 'alice' };
const BOB: Owner = { kind: 'account', accountId: 'bob' };
const SHOP: LeasedEndpoint = { kind: 'name', name: 'shop' };
const PORT: LeasedEndpoint = { kind: 'port', transport: 'tcp', port: 20_001 };
const UNTIL = 30_000;

const alone = (tunnelId: string, endpoint: LeasedEndpoint, owner = ALICE, secretHash = 'alices'): EndpointClaim => ({
  tunnelId,
  endpoint,
  owner,
  secretHash,
  group: null,
});
const member = (tunnelId: string, endpoint: LeasedEndpoint, owner = ALICE, keyHash = 'key'): EndpointClaim => ({
  tunnelId,
  endpoint,
  owner,
  secretHash: `of ${tunnelId}`,
  group: { name: 'pool', keyHash },
});
const after = (end: LastRun['end'], ...claims: EndpointClaim[]) => new AwaitedEndpoints({ claims, end }, UNTIL);

describe('the endpoints of the last run', () => {
  it('are held if the run ended within the window, by a clock that was not set back meanwhile', () => {
    const run = (lastAliveAt: number): LastRun => ({ claims: [], lastAliveAt, end: 'crashed' });
    expect(isAwaited(run(1000), 30_999, 30_000)).toBe(true);
    expect(isAwaited(run(1000), 31_000, 30_000)).toBe(false);
    expect(isAwaited(run(9_000_000), 1000, 30_000)).toBe(false);
    expect(isAwaited(run(Number.NEGATIVE_INFINITY), 1000, 30_000)).toBe(false);
  });

  it('after a crash are given once, and only to the client with the right secret', () => {
    const awaited = after('crashed', alone('t1', SHOP), alone('t2', PORT));
    expect(awaited.take(SHOP, ALICE, 'another', 0)).toBeNull();
    expect(awaited.take(SHOP, BOB, 'alices', 0)).toBeNull();
    expect(awaited.takeForGroup(SHOP, ALICE, 'key', 0)).toBeNull();
    expect(awaited.take(SHOP, ALICE, 'alices', 0)).toEqual([alone('t1', SHOP)]);
    expect(awaited.take(SHOP, ALICE, 'alices', 0)).toBeNull();
    expect([...awaited.endpoints()].map(({ endpoint }) => endpoint)).toEqual([PORT]);
  });

  it('after a clean stop are given to any client of the account, and to no other account', () => {
    const awaited = after('stopped', alone('t1', SHOP), member('t2', PORT));
    expect(awaited.take(SHOP, BOB, 'alices', 0)).toBeNull();
    expect(awaited.take(SHOP, ALICE, 'without', 0)).not.toBeNull();
    expect(awaited.takeForGroup(PORT, BOB, 'another key', 0)).toBeNull();
    expect(awaited.takeForGroup(PORT, ALICE, 'another key', 0)).not.toBeNull();
  });

  it('of a group are given to any client with the group key, which settles the claims of every member', () => {
    const members = [member('t1', PORT), member('t2', PORT, BOB)];
    const awaited = after('crashed', ...members);
    expect(awaited.take(PORT, ALICE, 'of t1', 0)).toBeNull();
    expect(awaited.takeForGroup(PORT, ALICE, 'another key', 0)).toBeNull();
    expect(awaited.groupOnPort('tcp', 'pool', 'another key', 0)).toBeNull();
    expect(awaited.groupOnPort('tcp', 'pool', 'key', 0)).toEqual(PORT);
    expect(awaited.takeForGroup(PORT, BOB, 'key', 0)).toEqual(members);
    expect(awaited.groupOnPort('tcp', 'pool', 'key', 0)).toBeNull();
  });

  it('are free when the window has ended', () => {
    const awaited = after('crashed', alone('t1', SHOP));
    expect(awaited.isClaimant(ALICE, 'alices', UNTIL - 1)).toBe(true);
    expect(awaited.isClaimant(BOB, 'alices', UNTIL - 1)).toBe(false);
    expect(awaited.expire(UNTIL - 1)).toEqual([]);
    expect(awaited.isClaimant(ALICE, 'alices', UNTIL)).toBe(false);
    expect(awaited.take(SHOP, ALICE, 'alices', UNTIL)).toBeNull();
    expect(awaited.expire(UNTIL)).toEqual([alone('t1', SHOP)]);
    expect(awaited.expire(UNTIL)).toEqual([]);
  });

  it('are each given at most once and only to a client with a right to them, over random requests', () => {
    const endpoint = fc.constantFrom(SHOP, PORT, { kind: 'name', name: 'other' } as const);
    const owner = fc.constantFrom(ALICE, BOB);
    const word = fc.constantFrom('a', 'b', 'c');
    const claim = fc.record({ endpoint, owner, secretHash: word, isMember: fc.boolean(), keyHash: word });
    const ask = fc.record({ endpoint, owner, word, forGroup: fc.boolean(), at: fc.nat({ max: UNTIL + 5000 }) });
    const end = fc.constantFrom('crashed' as const, 'stopped' as const);
    fc.assert(
      fc.property(end, fc.array(claim, { maxLength: 8 }), fc.array(ask, { maxLength: 30 }), (how, given, asked) => {
        const claims = given.map(
          ({ isMember, keyHash, ...rest }, at): EndpointClaim => ({
            ...rest,
            tunnelId: `t${at}`,
            group: isMember ? { name: 'pool', keyHash } : null,
          }),
        );
        const awaited = new AwaitedEndpoints({ claims, end: how }, UNTIL);
        const settled: string[] = [];
        for (const { endpoint: at, owner: who, word: by, forGroup, at: now } of asked) {
          const taken = forGroup ? awaited.takeForGroup(at, who, by, now) : awaited.take(at, who, by, now);
          if (taken === null) continue;
          expect(now).toBeLessThan(UNTIL);
          expect(new Set(taken.map((each) => endpointKey(each.endpoint)))).toEqual(new Set([endpointKey(at)]));
          expect(taken.some((each) => each.owner === who || each.group?.keyHash === by)).toBe(true);
          settled.push(...taken.map(({ tunnelId }) => tunnelId));
        }
        settled.push(...awaited.expire(UNTIL).map(({ tunnelId }) => tunnelId));
        expect(settled.toSorted()).toEqual(claims.map(({ tunnelId }) => tunnelId).toSorted());
      }),
    );
  });
});

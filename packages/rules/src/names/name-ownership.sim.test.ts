// Random lives of one name, compared with a ledger that knows only the promised owner and the end of the promise.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  FREE_NAME,
  type NameEvent,
  type NameOwnership,
  type NameRules,
  nameAt,
  nameEndsAt,
  transitionName,
} from './name-ownership.ts';

const account = fc.constantFrom('a', 'b', 'c');
const key = fc.constantFrom(null, 'red', 'blue');
const event: fc.Arbitrary<NameEvent> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('tunnel-opened' as const),
      by: account,
      groupKeyHash: key,
      joinsGroup: fc.constant(false),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('tunnel-ended' as const), abandoned: fc.boolean() }) },
  fc.record({ kind: fc.constant('reserve' as const), by: account, servedByOther: fc.constant(false) }),
  fc.record({ kind: fc.constant('release' as const), by: account }),
  fc.constant({ kind: 'crowded-out' as const }),
  fc.constant({ kind: 'time-passed' as const }),
);
const rules: fc.Arbitrary<NameRules> = fc.record({
  holdMs: fc.constantFrom(0, 30),
  graceMs: fc.constantFrom(0, 7),
});

/** Promised owner of the name, derived from events as seen from outside. `until` is null if the promise lasts until another event. */
interface Due {
  readonly owner: string;
  readonly until: number | null;
  readonly reserved: boolean;
}

const ownerOf = (name: NameOwnership): string | null => (name.kind === 'free' ? null : name.ownerId);
const isRefused = (effects: readonly { readonly kind: string }[]): boolean =>
  effects.some(({ kind }) => kind === 'refused');

it('a name never has two owners, goes to no other account before its time, and stays reserved until its owner releases it', () => {
  fc.assert(
    fc.property(rules, fc.array(fc.tuple(event, fc.nat({ max: 25 })), { maxLength: 80, size: 'max' }), (by, moves) => {
      let name: NameOwnership = FREE_NAME;
      let due: Due | null = null;
      let now = 0;
      for (const [what, elapsedMs] of moves) {
        now += elapsedMs;
        const before = nameAt(name, now, by);
        const [after, effects] = transitionName(name, what, now, by);
        // Until the promise ends, the name belongs to its owner and is refused to every other account.
        if (due !== null && (due.until === null || now < due.until)) {
          expect(ownerOf(before)).toBe(due.owner);
          if (due.reserved) expect(before.kind).toBe('reserved');
          if ((what.kind === 'tunnel-opened' || what.kind === 'reserve') && what.by === due.owner) {
            expect(isRefused(effects)).toBe(false);
          }
          if (what.kind === 'reserve' && what.by !== due.owner) expect(isRefused(effects)).toBe(true);
          if (what.kind === 'tunnel-opened' && what.by !== due.owner && what.groupKeyHash === null) {
            expect(isRefused(effects)).toBe(true);
          }
        }
        // A name never passes directly from one account to another; the name must be free in between.
        if (ownerOf(before) !== null && ownerOf(after) !== null) expect(ownerOf(after)).toBe(ownerOf(before));
        if (isRefused(effects)) expect(after).toEqual(before);
        // Only opening a tunnel and reserving give a free name an owner.
        if (ownerOf(before) === null && ownerOf(after) !== null)
          expect(['tunnel-opened', 'reserve']).toContain(what.kind);
        if (before.kind === 'reserved' && after.kind !== 'reserved') {
          expect(what).toEqual({ kind: 'release', by: before.ownerId });
        }
        expect(after.kind === 'free' || after.openTunnels >= 0).toBe(true);
        // nameEndsAt is exact: the name changes at that time, not 1 ms earlier.
        const endsAt = nameEndsAt(after, by);
        if (endsAt !== null) {
          expect(endsAt).toBeGreaterThan(now);
          expect(nameAt(after, endsAt - 1, by)).toEqual(after);
          expect(nameAt(after, endsAt, by).kind).not.toBe(after.kind);
        }
        name = after;
        due = dueOf(after, now, by, due, before);
      }
    }),
    { numRuns: 300 },
  );
});

/** Returns the promise to the owner at this moment, in the plain words of the documentation. */
const dueOf = (
  name: NameOwnership,
  now: number,
  { holdMs, graceMs }: NameRules,
  last: Due | null,
  before: NameOwnership,
): Due | null => {
  if (name.kind === 'free') return null;
  const owner = name.ownerId;
  if (name.kind === 'reserved') return { owner, until: null, reserved: true };
  if (name.openTunnels > 0) return { owner, until: null, reserved: false };
  const justChanged = before.kind === 'free' || before.kind !== name.kind || before.openTunnels > 0;
  if (!justChanged) return last;
  // A promise starts with the release or with the last use. If neither is now, the old time had run out before a tunnel was tried without
  // success, and no promise is left.
  if (name.kind === 'released') {
    return name.releasedAt === now ? { owner, until: now + graceMs, reserved: false } : null;
  }
  return name.lastUsedAt === now ? { owner, until: now + holdMs + graceMs, reserved: false } : null;
};

import { describe, expect, it } from 'vitest';
import { RULE_LIMITS } from '../limits.ts';
import {
  crowdedOut,
  FREE_NAME,
  type NameEffect,
  type NameEvent,
  type NameOwnership,
  nameEndsAt,
  owningLabel,
  refusalOfName,
  transitionName,
} from './name-ownership.ts';

const RULES = { holdMs: 30, graceMs: 7 };
const PORT_RULES = { holdMs: 0, graceMs: 7 };

const open = (by: string, groupKeyHash: string | null = null, joinsGroup = false): NameEvent => ({
  kind: 'tunnel-opened',
  by,
  groupKeyHash,
  joinsGroup,
});
const end: NameEvent = { kind: 'tunnel-ended', abandoned: false };
const reserve = (by: string, servedByOther = false): NameEvent => ({ kind: 'reserve', by, servedByOther });
const release = (by: string): NameEvent => ({ kind: 'release', by });

/** Returns the name after the given timed events, and the effects of the last event. */
const live = (rules: typeof RULES, ...events: readonly (readonly [number, NameEvent])[]) => {
  let name: NameOwnership = FREE_NAME;
  let effects: readonly NameEffect[] = [];
  for (const [now, event] of events) [name, effects] = transitionName(name, event, now, rules);
  return { name, effects };
};
const refused = (reason: string): object[] => [{ kind: 'refused', reason }];

describe('a name that a tunnel uses', () => {
  it('belongs to its account from its first tunnel until the hold and grace times have passed after its last', () => {
    const used = live(RULES, [0, open('a')], [1, open('a')], [2, end], [5, end]);
    expect(used.name).toMatchObject({ kind: 'held', ownerId: 'a', openTunnels: 0, lastUsedAt: 5 });
    expect(nameEndsAt(used.name, RULES)).toBe(35);
    expect(transitionName(used.name, open('b'), 34, RULES)[1]).toEqual(refused('in-use'));
    expect(transitionName(used.name, open('b'), 41, RULES)[1]).toEqual([{ kind: 'released' }, ...refused('in-use')]);
    expect(transitionName(used.name, open('b'), 42, RULES)[1]).toEqual([
      { kind: 'freed' },
      { kind: 'claimed', ownerId: 'b' },
    ]);
  });

  it('goes back to its account during the grace time, and its hold starts over', () => {
    const back = live(RULES, [0, open('a')], [5, end], [36, open('a')], [40, end]);
    expect(back.name).toMatchObject({ kind: 'held', ownerId: 'a', lastUsedAt: 40 });
  });

  it('is held for a shorter time if the edge chose it, until its account requests it by name or reserves it', () => {
    const rules = { ...RULES, assignedHoldMs: 3 };
    const assigned = { ...open('a'), isAssigned: true } as const;
    const { name } = live(rules, [0, assigned], [5, end]);
    expect([name, nameEndsAt(name, rules)]).toMatchObject([{ kind: 'held', isAssigned: true }, 8]);
    const again = live(rules, [0, assigned], [5, end], [6, assigned], [7, end]);
    expect(nameEndsAt(again.name, rules)).toBe(10);
    const chosen = live(rules, [0, assigned], [5, end], [6, open('a')], [7, end], [7, assigned], [8, end]);
    expect(nameEndsAt(chosen.name, rules)).toBe(38);
    const kept = live(rules, [0, assigned], [5, end], [6, reserve('a')]);
    expect(kept.name).toEqual({ kind: 'reserved', ownerId: 'a', groupKeyHash: null, openTunnels: 0, lastUsedAt: 5 });
    // An expired name of another account becomes this account's new name, assigned by the edge.
    const taken = live(rules, [0, open('b')], [5, end], [60, assigned], [61, end]);
    expect([taken.name, nameEndsAt(taken.name, rules)]).toMatchObject([{ ownerId: 'a' }, 64]);
  });

  it('does not expire while a tunnel serves it', () => {
    const { name } = live(RULES, [0, open('a')], [1000, { kind: 'time-passed' }]);
    expect([name.kind, nameEndsAt(name, RULES)]).toEqual(['held', null]);
  });

  it('is freed if the tunnel that claimed it was abandoned, unless its account held it before', () => {
    expect(live(RULES, [0, open('a')], [1, { kind: 'tunnel-ended', abandoned: true }])).toEqual({
      name: FREE_NAME,
      effects: [{ kind: 'freed' }],
    });
    const kept = live(RULES, [0, open('a')], [1, end], [2, open('a')], [3, { kind: 'tunnel-ended', abandoned: true }]);
    expect(kept.name).toMatchObject({ kind: 'held', lastUsedAt: 1 });
  });

  it('is not claimed where the hold time is 0', () => {
    expect(live(PORT_RULES, [0, open('a')]).name).toBe(FREE_NAME);
    const { name } = live(RULES, [0, open('a')], [5, end]);
    expect(transitionName(name, open('b'), 5, PORT_RULES)).toEqual([FREE_NAME, [{ kind: 'freed' }]]);
  });
});

describe('a reserved name', () => {
  it('stays with its account, used or not, and is refused to any other account', () => {
    const { name, effects } = live(RULES, [0, reserve('a')]);
    expect(effects).toEqual([{ kind: 'reserved', ownerId: 'a' }]);
    expect(transitionName(name, { kind: 'time-passed' }, 1e9, RULES)).toEqual([name, []]);
    expect(transitionName(name, reserve('b'), 1, RULES)).toEqual([name, refused('in-use')]);
    expect(transitionName(name, open('b'), 1, RULES)).toEqual([name, refused('in-use')]);
    expect(transitionName(name, reserve('a'), 1, RULES)).toEqual([name, []]);
    expect(transitionName(name, release('b'), 1, RULES)).toEqual([name, []]);
  });

  it('can be created from a name that its account holds or has released, but not while another account serves it', () => {
    const held = live(RULES, [0, open('a', 'key')], [1, reserve('a')]);
    expect(held.name).toMatchObject({ kind: 'reserved', groupKeyHash: 'key', openTunnels: 1 });
    expect(live(RULES, [0, reserve('a')], [1, release('a')], [2, reserve('a')]).name).toMatchObject({
      kind: 'reserved',
    });
    expect(live(RULES, [0, reserve('a', true)])).toEqual({ name: FREE_NAME, effects: refused('in-use') });
  });

  it('is released when its account gives it back: at once, or when its tunnels have ended', () => {
    const idle = live(RULES, [0, reserve('a')], [1, release('a')]);
    expect(idle.effects).toEqual([{ kind: 'unreserved' }, { kind: 'released' }]);
    expect(nameEndsAt(idle.name, RULES)).toBe(8);
    const served = live(RULES, [0, reserve('a')], [1, open('a')], [2, release('a')]);
    expect([served.name.kind, nameEndsAt(served.name, RULES)]).toEqual(['released', null]);
    expect(nameEndsAt(transitionName(served.name, end, 50, RULES)[0], RULES)).toBe(57);
  });

  it('is free immediately after its release where the grace time is 0', () => {
    const rules = { holdMs: 30, graceMs: 0 };
    expect(live(rules, [0, reserve('a')], [1, release('a')]).effects.at(-1)).toEqual({ kind: 'freed' });
    expect(live(rules, [0, reserve('a')], [1, open('a')], [2, release('a')], [3, end]).name).toBe(FREE_NAME);
  });
});

it('a released port is free after its grace time, no matter how often its last account uses it', () => {
  const { name } = live(PORT_RULES, [0, reserve('a')], [1, release('a')], [2, open('a')], [20, end]);
  expect(name).toBe(FREE_NAME);
});

describe('the name of a group', () => {
  it('opens for any account with the key of its last group, and still belongs to its owner', () => {
    const { name } = live(RULES, [0, open('a', 'key')], [1, end]);
    const [opened, effects] = transitionName(name, open('b', 'key'), 2, RULES);
    expect([opened, effects]).toMatchObject([{ ownerId: 'a', openTunnels: 1 }, []]);
    expect(transitionName(name, open('b', 'other'), 2, RULES)[1]).toEqual(refused('group-key'));
    expect(transitionName(name, open('b'), 2, RULES)[1]).toEqual(refused('in-use'));
  });

  it('opens for its owner with or without a key, and remembers the last key', () => {
    const alone = live(RULES, [0, open('a', 'key')], [1, end], [2, open('a')]);
    expect(alone.name).toMatchObject({ groupKeyHash: 'key' });
    expect(live(RULES, [0, open('a', 'key')], [1, end], [2, open('a', 'new')]).name).toMatchObject({
      groupKeyHash: 'new',
    });
  });

  it('counts a member that an open group admitted, without a change of ownership', () => {
    expect(live(RULES, [0, open('a', 'key')], [1, open('b', 'key', true)], [2, end]).name).toMatchObject({
      ownerId: 'a',
      openTunnels: 1,
    });
    expect(live(RULES, [0, open('b', 'key', true)]).name).toBe(FREE_NAME);
  });

  it('opens for no key once it is released', () => {
    const { name } = live(RULES, [0, open('a', 'key')], [1, end], [2, release('a')]);
    expect(transitionName(name, open('b', 'key'), 3, RULES)[1]).toEqual(refused('group-key'));
  });
});

it("the operator cannot use a name that an account holds, unless it has the group's key", () => {
  const { name } = live(RULES, [0, open('a', 'key')], [1, end]);
  expect(refusalOfName(name, { by: null, groupKeyHash: null }, 2, RULES)).toBe('in-use');
  expect(refusalOfName(name, { by: null, groupKeyHash: 'key' }, 2, RULES)).toBeNull();
  expect(refusalOfName(name, { by: null, groupKeyHash: null }, 38, RULES)).toBeNull();
});

it('nested names and wildcards are decided by the name above them', () => {
  expect(['shop', 'a.shop', '*.shop'].map(owningLabel)).toEqual(['shop', 'shop', 'shop']);
});

it('with too many held names, the longest unused name is released, and a name in use only if all are in use', () => {
  const held = Array.from({ length: RULE_LIMITS.HELD_NAMES_PER_ACCOUNT_MAX }, (_, at) => ({
    lastUsedAt: 1000 - at,
    openTunnels: 0,
  }));
  expect(crowdedOut(held)).toEqual([]);
  expect(crowdedOut([...held, { lastUsedAt: 1, openTunnels: 1 }])).toEqual([held.at(-1)]);
  const used = held.map((name) => ({ ...name, openTunnels: 1 }));
  expect(crowdedOut([...used, { lastUsedAt: null, openTunnels: 1 }])).toEqual([used.at(-1)]);
  const first = Array.from({ length: held.length + 1 }, (_, at) => ({ lastUsedAt: null, openTunnels: 1, at }));
  expect(crowdedOut(first)).toEqual([first[0]]);
  expect(live(RULES, [0, open('a')], [1, end], [2, { kind: 'crowded-out' }]).name).toMatchObject({
    kind: 'released',
    releasedAt: 2,
  });
  expect(live(RULES, [0, reserve('a')], [2, { kind: 'crowded-out' }]).name).toMatchObject({ kind: 'reserved' });
});

describe('a withheld name', () => {
  const WITHHELD = { ...RULES, isWithheld: true };

  it('is refused to every account for use, reservation and groups, but not to the operator', () => {
    for (const event of [open('a'), open('a', 'key'), reserve('a')]) {
      expect(transitionName(FREE_NAME, event, 0, WITHHELD)).toEqual([FREE_NAME, refused('withheld')]);
    }
    expect(refusalOfName(FREE_NAME, { by: 'a', groupKeyHash: null }, 0, WITHHELD)).toBe('withheld');
    expect(refusalOfName(FREE_NAME, { by: null, groupKeyHash: null }, 0, WITHHELD)).toBeNull();
  });

  it('stays with the account that holds it until that account loses it', () => {
    const { name } = live(RULES, [0, open('a')], [5, end]);
    expect(transitionName(name, open('a'), 34, WITHHELD)[1]).toEqual([]);
    expect(transitionName(name, reserve('a'), 34, WITHHELD)[0]).toMatchObject({ kind: 'reserved', ownerId: 'a' });
    expect(transitionName(name, open('b'), 34, WITHHELD)[1]).toEqual(refused('in-use'));
    expect(transitionName(name, open('a'), 42, WITHHELD)).toEqual([
      FREE_NAME,
      [{ kind: 'freed' }, ...refused('withheld')],
    ]);
  });
});

// Random events on a group, compared after each event with a model that only keeps a list of members and counts the list every time.

import { MemberHealth, type Owner, type ProbeKind } from '@tunnel/rules/tunnels';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type GroupEffect, type GroupMember, TunnelGroup } from './tunnel-group.rules.ts';

const IDS = ['a', 'b', 'c', 'd'] as const;
const OWNERS: readonly Owner[] = [
  { kind: 'operator' },
  { kind: 'account', accountId: 'alice' },
  { kind: 'account', accountId: 'bob' },
];

interface Move {
  readonly do: 'join' | 'take-over' | 'leave' | 'leave-late' | 'healthy' | 'unhealthy' | 'dispatch';
  readonly id: number;
  readonly kind: ProbeKind | null;
  readonly url: string | null;
  readonly owner: number;
}

const move: fc.Arbitrary<Move> = fc.record({
  do: fc.constantFrom('join', 'take-over', 'leave', 'leave-late', 'healthy', 'unhealthy', 'unhealthy', 'dispatch'),
  id: fc.nat({ max: IDS.length - 1 }),
  kind: fc.constantFrom('tcp', 'http', null),
  url: fc.constantFrom(null, 'https://one.test/', 'https://two.test/'),
  owner: fc.nat({ max: OWNERS.length - 1 }),
});

interface ModelMember {
  readonly id: string;
  readonly kind: ProbeKind | null;
  readonly url: string | null;
  readonly owner: Owner;
  healthy: boolean;
}

/** The rules of the specification, written as simply as possible. */
class Model {
  members: ModelMember[] = [];
  wasHealthySinceAlert = false;
  failures = 0;
  dispatches = 0;

  get healthyIds(): string[] {
    return this.members.filter(({ healthy }) => healthy).map(({ id }) => id);
  }

  /** Expected alert after a change: its URLs, or null if no alert is expected. */
  after(left: ModelMember | null): string[] | null {
    if (this.healthyIds.length > 0) this.wasHealthySinceAlert = true;
    else if (this.wasHealthySinceAlert && this.members.length > 0) {
      this.wasHealthySinceAlert = false;
      const all = left === null ? this.members : [...this.members, left];
      return [...new Set(all.map(({ url }) => url).filter((url) => url !== null))].sort();
    }
    return null;
  }
}

it('a group agrees with a simple model after every random event, and alerts once per loss of health', () => {
  fc.assert(
    fc.property(fc.array(move, { maxLength: 80, size: 'max' }), fc.nat(), (moves, seed) => {
      const random = randomOf(seed);
      const model = new Model();
      let group = newGroup();
      const gone: GroupMember[] = [];
      let now = 0;
      for (const what of moves) {
        now += 1;
        const id = IDS[what.id] as string;
        const present = group.get(id);
        const known = model.members.find((one) => one.id === id);
        const totals = group.tally(OWNERS[0] as Owner);
        expect([totals.totalHealthFailures, totals.totalDispatches]).toEqual([model.failures, model.dispatches]);
        let effects: readonly GroupEffect<GroupMember>[] = [];
        let expected: { readonly changed: boolean; readonly alert: string[] | null; readonly removed: boolean } =
          NOTHING;

        if (what.do === 'join' && present === undefined) {
          const owner = OWNERS[what.owner] as Owner;
          const member: GroupMember = {
            tunnelId: id,
            owner,
            health: new MemberHealth(what.kind),
            alertWebhook: what.url,
            policy: null,
          };
          effects = group.transition({ kind: 'member-joined', member }, now);
          model.members.push({ id, kind: what.kind, url: what.url, owner, healthy: what.kind === null });
          expected = { changed: false, alert: model.after(null), removed: false };
        } else if (what.do === 'take-over' && present !== undefined) {
          effects = group.transition({ kind: 'member-joined', member: { ...present } }, now);
          gone.push(present);
        } else if (what.do === 'leave' && present !== undefined && known !== undefined) {
          effects = group.transition({ kind: 'member-left', member: present }, now);
          gone.push(present);
          model.members = model.members.filter((one) => one !== known);
          const removed = model.members.length === 0;
          expected = { changed: false, alert: removed ? null : model.after(known), removed };
        } else if (what.do === 'leave-late' && gone.length > 0) {
          effects = group.transition({ kind: 'member-left', member: gone[what.id % gone.length] as GroupMember }, now);
        } else if (what.do === 'healthy' && present !== undefined && known !== undefined) {
          const changed = !known.healthy;
          known.healthy = true;
          effects = group.transition({ kind: 'reported-healthy', member: present }, now);
          expected = { changed, alert: model.after(null), removed: false };
        } else if (what.do === 'unhealthy' && present !== undefined && known !== undefined) {
          const changed = known.healthy && known.kind !== null;
          if (known.kind !== null) known.healthy = false;
          model.failures += 1;
          effects = group.transition(
            { kind: 'reported-unhealthy', member: present, reason: 'why', consecutiveFailures: 3 },
            now,
          );
          expected = { changed, alert: model.after(null), removed: false };
        } else if (what.do === 'dispatch') {
          const picked = group.pick(random);
          expect(picked === null).toBe(model.healthyIds.length === 0);
          if (picked !== null) {
            expect(model.healthyIds).toContain(picked.tunnelId);
            expect(group.has(picked)).toBe(true);
            group.dispatched(picked);
            model.dispatches += 1;
          }
        }

        compareEffects(effects, expected);
        compareState(group, model);
        if (expected.removed) {
          group = newGroup();
          Object.assign(model, new Model());
        }
      }
    }),
    { numRuns: 60 },
  );
});

it('every healthy member that was not tried yet is picked exactly once', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 12 }), fc.array(fc.nat({ max: 11 })), fc.nat(), (size, down, seed) => {
      const group = newGroup();
      const members = Array.from({ length: size }, (_, at): GroupMember => {
        const health = new MemberHealth(down.includes(at) ? 'tcp' : null);
        return { tunnelId: `t${at}`, owner: { kind: 'operator' }, health, alertWebhook: null, policy: null };
      });
      for (const member of members) group.transition({ kind: 'member-joined', member }, 0);
      const random = randomOf(seed);
      const tried: GroupMember[] = [];
      for (let next = group.pick(random, tried); next !== null; next = group.pick(random, tried)) {
        expect(tried).not.toContain(next);
        tried.push(next);
      }
      expect(new Set(tried)).toEqual(new Set(members.filter(({ health }) => health.healthy)));
    }),
  );
});

const randomOf = (seed: number) => {
  let state = seed;
  return (): number => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
};

const NOTHING = { changed: false, alert: null, removed: false };

const newGroup = () =>
  new TunnelGroup<GroupMember>({
    groupId: 'g',
    protocol: 'http',
    name: 'web',
    keyHash: 'ab'.repeat(32),
    endpoint: { kind: 'name', name: 'web' },
    label: 'web',
    policy: null,
  });

const compareEffects = (
  effects: readonly GroupEffect<GroupMember>[],
  expected: { readonly changed: boolean; readonly alert: string[] | null; readonly removed: boolean },
): void => {
  const of = (kind: string) => effects.filter((effect) => effect.kind === kind);
  expect(of('health-changed')).toHaveLength(expected.changed ? 1 : 0);
  expect(of('remove-group')).toHaveLength(expected.removed ? 1 : 0);
  const alerts = effects.filter((effect) => effect.kind === 'raise-alert');
  expect(alerts.map(({ urls }) => [...urls].sort())).toEqual(expected.alert === null ? [] : [expected.alert]);
};

const compareState = (group: TunnelGroup<GroupMember>, model: Model): void => {
  expect([...group.members()].map(({ tunnelId }) => tunnelId).sort()).toEqual(model.members.map(({ id }) => id).sort());
  expect(group.healthyCount).toBe(model.healthyIds.length);
  for (const owner of OWNERS) {
    const own = owner.kind === 'operator' ? model.members : model.members.filter((one) => one.owner === owner);
    const { memberCount, healthyCount } = group.tally(owner);
    expect([memberCount, healthyCount]).toEqual([own.length, own.filter(({ healthy }) => healthy).length]);
    if (owner.kind === 'account') expect(group.isVisibleTo(owner)).toBe(own.length > 0);
  }
};

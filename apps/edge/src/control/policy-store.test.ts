import { type CompiledPolicy, canonicalJson, type Policy } from '@tunnel/policy';
import { FakeClock } from '@tunnel/testkit';
import { beforeEach, expect, it } from 'vitest';
import type { BroughtPolicy, RoutePolicy } from '../routing/route-policy.ts';
import { RESUME_WINDOW_MS } from './limits.ts';
import { POLICIES_MAX_BYTES_PER_ACCOUNT, PolicyStore } from './policy-store.ts';
import { policyWeight } from './policy-weight.rules.ts';

/** A policy of about 100 bytes of JSON. Different names give different policies. */
const policyOf = (name: string): Policy => ({ login: null, rules: [{ name, deny: 403 }, { allow: true }] });

/** Weight of each policy made with a name of one letter. */
const WEIGHT = policyWeight(canonicalJson(policyOf('a')));

const bring = (name: string | null, revision = 0, owner = 'operator'): BroughtPolicy => ({
  policy: name === null ? null : policyOf(name),
  services: ['api'],
  stamp: { revision, hash: name === null ? null : name.padEnd(64, '0'), isReturning: false },
  owner,
});

let compiled: string[];
let over: object[];
let clock: FakeClock;
let store: PolicyStore;
const compile = (policy: Policy): CompiledPolicy => {
  compiled.push(String(policy.rules[0]?.name));
  return { policy } as CompiledPolicy;
};

beforeEach(() => {
  [compiled, over] = [[], []];
  clock = new FakeClock();
  store = new PolicyStore({ clock, compile, onOver: (served) => void over.push(served) });
});

it('equal policies are compiled and stored once, with separate counts', () => {
  const a = store.hold(bring('a'));
  const b = store.hold(bring('a'));
  expect(a.current?.compiled).toBe(b.current?.compiled);
  expect([compiled, store.size]).toEqual([['a'], 1]);
  const { bytes } = store;
  (a.current as RoutePolicy).counts.matched[0] = 7;
  expect(b.current?.counts).toEqual({ matched: [0, 0], answered: [0, 0] });
  expect(a.current).not.toBe(b.current);
  store.release(a);
  expect([store.size, store.bytes]).toEqual([1, bytes]);
  store.release(b);
  expect([store.size, store.bytes, over.length]).toEqual([0, 0, 2]);
});

it('a held policy has its revision, services and hash', () => {
  const holder = store.hold({ ...bring('a', 3), services: ['api', 'admin'] });
  expect(holder.current).toMatchObject({ revision: 3, services: ['api', 'admin'], hash: 'a'.padEnd(64, '0') });
});

it('a tunnel without a policy stores nothing', () => {
  const holder = store.hold(bring(null));
  expect([holder.current, store.size, store.bytes]).toEqual([null, 0, 0]);
  store.release(holder);
  expect(over).toEqual([]);
});

it('replacing a policy takes one step for all users of the holder, and ends the previous policy', () => {
  const holder = store.hold(bring('a'));
  const before = holder.current;
  store.replace(holder, bring('b', 1));
  expect([holder.current?.revision, store.size, over]).toEqual([1, 1, [before]]);
  store.replace(holder, bring(null, 2));
  expect([holder.current, store.size, store.bytes]).toEqual([null, 0, 0]);
  store.replace(holder, bring('c', 3));
  expect([holder.current?.revision, store.size]).toEqual([3, 1]);
});

it('a released policy stays readable for connections still using the route', () => {
  const holder = store.hold(bring('a'));
  const { current } = holder;
  store.release(holder);
  store.release(holder);
  expect([holder.current, store.size, over]).toEqual([current, 0, [current]]);
});

it('a tunnel that registers again with an equal policy keeps its counts, without another compilation', () => {
  const before = store.hold(bring('a', 2));
  const after = store.hold(bring('a', 2), before);
  store.release(before);
  expect(after.current).toBe(before.current);
  expect([over, store.size]).toEqual([[], 1]);
  store.release(after);
  expect(over).toEqual([before.current]);
  // The tunnel was lost and now returns.
  const again = store.hold(bring('a', 2), after);
  expect([again.current, compiled]).toEqual([before.current, ['a']]);
  const changed = store.hold(bring('b', 2), again);
  expect(changed.current?.counts).toEqual({ matched: [0, 0], answered: [0, 0] });
  expect(changed.current).not.toBe(again.current);
});

it('a policy without room is refused with POLICY_BUSY and changes nothing', async () => {
  const bytes = JSON.stringify(policyOf('a')).length;
  store = new PolicyStore({ clock, compile, bytesMax: 2 * WEIGHT });
  const a = store.hold(bring('a'));
  const b = store.hold(bring('b'));
  expect(store.bytes).toBe(2 * bytes);
  const busy = expect.objectContaining({ code: 'POLICY_BUSY', status: 503 });
  expect(() => store.hold(bring('c'))).toThrow(busy);
  const { current } = a;
  expect(() => store.replace(a, bring('c', 1))).toThrow(busy);
  expect([a.current, store.size, store.bytes]).toEqual([current, 2, 2 * bytes]);
  // An equal policy takes no additional room. A removed policy makes room once its tunnel can no longer return.
  store.hold(bring('b'));
  store.tunnelRemoved({ group: null, policy: a });
  expect(() => store.hold(bring('c'))).toThrow(busy);
  await clock.advance(RESUME_WINDOW_MS);
  expect(store.hold(bring('c')).current?.hash).toBe('c'.padEnd(64, '0'));
  store.release(b);
  expect(store.size).toBe(2);
});

it('a policy is freed when its single tunnel or its group is removed, but not when a member leaves', () => {
  const alone = store.hold(bring('a'));
  const shared = store.hold(bring('b'));
  const ofAlone = alone.current;
  const ofShared = shared.current;
  store.tunnelRemoved({ group: {} as never, policy: shared });
  expect([store.size, over]).toEqual([2, []]);
  const tunnel = { group: null, policy: alone };
  store.tunnelRemoved(tunnel);
  expect([store.size, over]).toEqual([1, [ofAlone, tunnel]]);
  const group = { policy: shared };
  store.groupRemoved(group);
  expect([store.size, over.slice(2)]).toEqual([0, [ofShared, group]]);
});

it('a lost tunnel finds room for its policy when it returns, any number of times', () => {
  const bytes = JSON.stringify(policyOf('a')).length;
  store = new PolicyStore({ clock, compile, bytesMax: 2 * WEIGHT });
  let tunnels = ['a', 'b'].map((name) => ({ group: null, policy: store.hold(bring(name)) }));
  for (let times = 0; times < 3; times += 1) {
    for (const tunnel of tunnels) store.tunnelRemoved(tunnel);
    tunnels = tunnels.map(({ policy }, at) => {
      const back = { group: null, policy: store.hold(bring(['a', 'b'][at] ?? ''), policy) };
      store.tunnelAdded(back);
      return back;
    });
  }
  expect([store.size, store.bytes, compiled]).toEqual([2, 2 * bytes, ['a', 'b']]);
});

it('a replaced, forgotten or never served policy makes room at once', () => {
  const bytes = JSON.stringify(policyOf('a')).length;
  store = new PolicyStore({ clock, compile, bytesMax: 2 * WEIGHT });
  let tunnel = { group: null, policy: store.hold(bring('a')) };
  for (const name of ['b', 'c', 'd', 'e']) {
    const next = { group: null, policy: store.hold(bring(name), tunnel.policy) };
    store.tunnelRemoved(tunnel);
    store.tunnelAdded(next);
    tunnel = next;
  }
  for (const name of ['f', 'g']) store.release(store.hold(bring(name), tunnel.policy));
  for (const [at, name] of ['h', 'i', 'j'].entries()) store.replace(tunnel.policy, bring(name, at + 1));
  store.tunnelRemoved(tunnel);
  store.forget(tunnel.policy);
  for (const name of ['k', 'l']) store.hold(bring(name));
  expect([store.size, store.bytes]).toEqual([2, 2 * bytes]);
});

it('the policy of an ended group takes its room until the resume window of its members has ended', async () => {
  store = new PolicyStore({ clock, compile, bytesMax: 2 * WEIGHT });
  const group = { policy: store.hold(bring('a')) };
  store.groupRemoved(group);
  const begun = store.hold(bring('b', 1), group.policy);
  store.tunnelAdded({ group: {} as never, policy: begun });
  expect(() => store.hold(bring('c'))).toThrow('too busy');
  await clock.advance(RESUME_WINDOW_MS);
  expect(store.hold(bring('c')).current?.hash).toBe('c'.padEnd(64, '0'));
});

it('an account with too many policies uses up only its own share of the room', () => {
  store = new PolicyStore({ clock, compile, bytesMax: 20 * WEIGHT, bytesPerOwner: 5 * WEIGHT });
  const evil = (name: string): void => void store.hold(bring(name, 0, 'account 2'));
  for (const name of ['a', 'b', 'c', 'd', 'e']) evil(name);
  expect(() => evil('f')).toThrow(expect.objectContaining({ code: 'POLICY_BUSY', status: 503 }));
  // More tunnels under an existing policy take no additional room.
  evil('a');
  for (const name of ['f', 'g', 'h', 'i', 'j']) store.hold(bring(name, 0, 'account 1'));
  expect(store.size).toBe(10);
});

it('a policy shared by several accounts is stored once and counts toward an account still using it', () => {
  store = new PolicyStore({ clock, compile, bytesMax: 20 * WEIGHT, bytesPerOwner: 2 * WEIGHT });
  const first = store.hold(bring('a', 0, 'account 1'));
  const other = store.hold(bring('a', 0, 'account 2'));
  store.hold(bring('b', 0, 'account 2'));
  store.release(first);
  // The first account has room for two policies again; the second account has two policies.
  for (const name of ['c', 'd']) store.hold(bring(name, 0, 'account 1'));
  expect(() => store.hold(bring('e', 0, 'account 2'))).toThrow('too busy');
  store.release(other);
  store.hold(bring('e', 0, 'account 2'));
  expect(store.size).toBe(4);
});

it('a policy with little JSON and a large compiled form counts by its size in memory', () => {
  const globs = Array.from({ length: 100 }, () => '/*a*b*c*d*e**');
  const policy: Policy = {
    login: null,
    rules: Array.from({ length: 20 }, () => ({ match: { path: globs }, deny: 403 })),
  };
  const brought = (name: string): BroughtPolicy => ({ ...bring(name, 0, 'account 2'), policy });
  store = new PolicyStore({ clock, compile });
  let held = 0;
  try {
    for (; held < 10_000; held += 1) store.hold(brought(`p${held}`));
  } catch {
    // Measured size of each policy in memory: 2 MB.
    expect(held).toBeLessThanOrEqual(POLICIES_MAX_BYTES_PER_ACCOUNT / 1.9e6);
  }
  expect(held).toBeLessThan(100);
});

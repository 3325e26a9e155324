import { beforeEach, describe, expect, it } from 'vitest';
import { GroupSeries, type SeriesGroup } from './group-series.rules.ts';

const KEPT_MS = 300_000;

interface TestGroup extends SeriesGroup {
  memberCount: number;
  healthyCount: number;
  dispatches: number;
}

const tcp = (name: string, port: number, keyHash = 'aa'): TestGroup => ({
  protocol: 'tcp',
  name,
  label: String(port),
  keyHash,
  memberCount: 1,
  healthyCount: 1,
  dispatches: 0,
});

const http = (name: string, label: string, keyHash = 'aa'): TestGroup => ({
  ...tcp(name, 0, keyHash),
  protocol: 'http',
  label,
});

let series: GroupSeries<TestGroup>;
let now: number;

beforeEach(() => {
  now = 0;
  series = new GroupSeries({ keptMs: KEPT_MS, keptMax: 100, dispatchesOf: ({ dispatches }) => dispatches });
});

const add = (group: TestGroup): TestGroup => {
  series.groupAdded(group, now);
  return group;
};
const remove = (group: TestGroup): void => series.groupRemoved(group, now);
const labels = (): string[] => series.read(now).map(({ group }) => group);
const at = (label: string) => series.read(now).find(({ group }) => group === label);

describe('labels', () => {
  it('the name, unless a living group has it: then name@label, for its whole life', () => {
    const first = add(http('web', 'shop'));
    add(http('web', 'blog', 'bb'));
    expect(labels()).toEqual(['web', 'web@blog']);
    remove(first);
    now = KEPT_MS;
    expect(labels()).toEqual(['web@blog']);
    add(http('web', 'news', 'cc'));
    expect(labels()).toEqual(['web@blog', 'web']);
  });

  it('name@protocol:label when name@label is taken, too', () => {
    add(http('web', 'shop'));
    add(http('web', '20000', 'bb'));
    add(tcp('web', 20_000, 'cc'));
    expect(labels()).toEqual(['web', 'web@20000', 'web@tcp:20000']);
  });

  it('never one that another living group has, wherever that came back', () => {
    add(tcp('db', 1, 'aa'));
    const moved = add(tcp('db', 2, 'bb'));
    remove(moved);
    add(tcp('db', 3, 'bb'));
    const third = add(tcp('db', 2, 'cc'));
    remove(third);
    add(tcp('db', 4, 'cc'));
    add(tcp('db', 2, 'dd'));
    expect(labels()).toEqual(['db', 'db@2', 'db@tcp:2', 'db@tcp:2:2']);
  });
});

describe('values', () => {
  it('members by their health, and dispatches as the group counts them', () => {
    const group = add(tcp('db', 1));
    Object.assign(group, { memberCount: 5, healthyCount: 2, dispatches: 7 });
    expect(at('db')).toEqual({ group: 'db', healthy: 2, unhealthy: 3, dispatches: 7, failures: new Map() });
  });

  it('a kind appears at 0 when a member of it joins, and counts each report', () => {
    const group = add(tcp('db', 1));
    series.memberJoined(group, 'http');
    series.memberJoined(group, 'none');
    expect(at('db')?.failures).toEqual(
      new Map([
        ['http', 0],
        ['none', 0],
      ]),
    );
    series.failureReported(group, 'http');
    series.failureReported(group, 'http');
    series.memberJoined(group, 'http');
    series.failureReported(group, 'tcp');
    expect(at('db')?.failures).toEqual(
      new Map([
        ['http', 2],
        ['none', 0],
        ['tcp', 1],
      ]),
    );
  });

  it('dispatches never fall, whatever the group says', () => {
    const group = add(tcp('db', 1));
    group.dispatches = 7;
    expect(at('db')?.dispatches).toBe(7);
    group.dispatches = 6;
    expect(at('db')?.dispatches).toBe(7);
  });

  it('what concerns an unknown or ended group changes nothing', () => {
    const group = add(tcp('db', 1));
    remove(group);
    remove(group);
    series.failureReported(group, 'tcp');
    series.memberJoined(tcp('x', 2), 'tcp');
    expect(at('db')?.failures).toEqual(new Map());
    expect(labels()).toEqual(['db']);
  });
});

describe('after the end of a group', () => {
  const ended = (): TestGroup => {
    const group = add(tcp('db', 1));
    group.dispatches = 7;
    series.memberJoined(group, 'tcp');
    series.failureReported(group, 'tcp');
    remove(group);
    return group;
  };

  it('its series stay for five minutes, without members, then disappear', () => {
    ended();
    now = KEPT_MS - 1;
    expect(at('db')).toEqual({ group: 'db', healthy: 0, unhealthy: 0, dispatches: 7, failures: new Map([['tcp', 1]]) });
    now = KEPT_MS;
    expect(labels()).toEqual([]);
  });

  it('the same one that comes back in time goes on, on another port too', () => {
    ended();
    now = KEPT_MS - 1;
    const again = add(tcp('db', 9));
    expect(at('db')?.dispatches).toBe(7);
    again.dispatches = 2;
    series.failureReported(again, 'tcp');
    now = KEPT_MS * 2;
    expect(at('db')).toMatchObject({ healthy: 1, dispatches: 9, failures: new Map([['tcp', 2]]) });
  });

  it('and begins anew when it comes back later', () => {
    ended();
    now = KEPT_MS;
    add(tcp('db', 1));
    expect(at('db')).toMatchObject({ dispatches: 0, failures: new Map() });
  });

  it('it goes on under the label it had, although the bare name is free by now', () => {
    const first = add(tcp('db', 1, 'aa'));
    const second = add(tcp('db', 2, 'bb'));
    remove(first);
    remove(second);
    now = 1;
    add(tcp('db', 3, 'bb'));
    expect(at('db')?.healthy).toBe(0);
    expect(at('db@2')?.healthy).toBe(1);
  });

  it('another one that takes the label goes on from its values, and it is no longer the first one’s', () => {
    ended();
    const other = add(tcp('db', 1, 'bb'));
    other.dispatches = 1;
    expect(at('db')).toMatchObject({ healthy: 1, dispatches: 8, failures: new Map([['tcp', 1]]) });
    add(tcp('db', 4, 'aa'));
    expect(labels()).toEqual(['db', 'db@4']);
    expect(at('db@4')?.dispatches).toBe(0);
    now = KEPT_MS * 2;
    expect(labels()).toEqual(['db', 'db@4']);
  });

  it('an http group is known by its subdomain, whatever it is called then', () => {
    const group = add(http('web', 'shop'));
    group.dispatches = 3;
    remove(group);
    add(http('another name', 'shop'));
    expect(labels()).toEqual(['web']);
    expect(at('web')?.dispatches).toBe(3);
  });

  it('http and https are two', () => {
    const group = add(http('web', 'shop'));
    remove(group);
    add({ ...http('other', 'shop'), protocol: 'https' });
    expect(labels()).toEqual(['web', 'other']);
  });

  it('at most so many are kept; the oldest go first', () => {
    for (let n = 0; n < 150; n += 1) remove(add(tcp(`db${n}`, n + 1)));
    expect(labels()).toHaveLength(100);
    expect(labels()[0]).toBe('db50');
  });
});

it('counters never fall while a series lives, through any life of groups', () => {
  let seed = 1;
  const random = (): number => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed / 2_147_483_647;
  };
  const living = new Map<string, TestGroup>();
  for (let step = 0; step < 5000; step += 1) {
    now += random() * 20_000;
    const before = new Map(series.read(now).map(({ group, dispatches }) => [group, dispatches]));
    const name = `db${Math.floor(random() * 3)}`;
    const keyHash = `k${Math.floor(random() * 4)}`;
    const key = `${name} ${keyHash}`;
    const group = living.get(key);
    if (group === undefined) living.set(key, add(tcp(name, Math.floor(random() * 5), keyHash)));
    else if (random() < 0.5) group.dispatches += 1;
    else {
      living.delete(key);
      remove(group);
    }
    const values = series.read(now);
    expect(new Set(values.map((value) => value.group)).size).toBe(values.length);
    expect(values.reduce((sum, { healthy }) => sum + healthy, 0)).toBe(living.size);
    for (const [label, dispatches] of before) {
      expect(values.find((value) => value.group === label)?.dispatches).toBeGreaterThanOrEqual(dispatches);
    }
  }
});

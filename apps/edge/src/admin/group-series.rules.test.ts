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

describe('the label of a group’s series', () => {
  it('is the group’s name, or name@label for as long as the group lives if the name is in use', () => {
    const first = add(http('web', 'shop'));
    add(http('web', 'blog', 'bb'));
    expect(labels()).toEqual(['web', 'web@blog']);
    remove(first);
    now = KEPT_MS;
    expect(labels()).toEqual(['web@blog']);
    add(http('web', 'news', 'cc'));
    expect(labels()).toEqual(['web@blog', 'web']);
  });

  it('is name@protocol:label if name@label is in use', () => {
    add(http('web', 'shop'));
    add(http('web', '20000', 'bb'));
    add(tcp('web', 20_000, 'cc'));
    expect(labels()).toEqual(['web', 'web@20000', 'web@tcp:20000']);
  });

  it('is never the label of another living group, even after groups have changed ports', () => {
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

describe('the values of a group’s series', () => {
  it('counts members by health, and takes dispatches from the group', () => {
    const group = add(tcp('db', 1));
    Object.assign(group, { memberCount: 5, healthyCount: 2, dispatches: 7 });
    expect(at('db')).toEqual({ group: 'db', healthy: 2, unhealthy: 3, dispatches: 7, failures: new Map() });
  });

  it('a kind of health check appears at 0 when a member joins, and counts every reported failure', () => {
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

  it('dispatches never fall, even if the group reports a lower number', () => {
    const group = add(tcp('db', 1));
    group.dispatches = 7;
    expect(at('db')?.dispatches).toBe(7);
    group.dispatches = 6;
    expect(at('db')?.dispatches).toBe(7);
  });

  it('failures and members of an unknown or ended group change nothing', () => {
    const group = add(tcp('db', 1));
    remove(group);
    remove(group);
    series.failureReported(group, 'tcp');
    series.memberJoined(tcp('x', 2), 'tcp');
    expect(at('db')?.failures).toEqual(new Map());
    expect(labels()).toEqual(['db']);
  });
});

describe('the series of an ended group', () => {
  const ended = (): TestGroup => {
    const group = add(tcp('db', 1));
    group.dispatches = 7;
    series.memberJoined(group, 'tcp');
    series.failureReported(group, 'tcp');
    remove(group);
    return group;
  };

  it('stays for five minutes without members, then disappears', () => {
    ended();
    now = KEPT_MS - 1;
    expect(at('db')).toEqual({ group: 'db', healthy: 0, unhealthy: 0, dispatches: 7, failures: new Map([['tcp', 1]]) });
    now = KEPT_MS;
    expect(labels()).toEqual([]);
  });

  it('continues if the same group returns in time, even on another port', () => {
    ended();
    now = KEPT_MS - 1;
    const again = add(tcp('db', 9));
    expect(at('db')?.dispatches).toBe(7);
    again.dispatches = 2;
    series.failureReported(again, 'tcp');
    now = KEPT_MS * 2;
    expect(at('db')).toMatchObject({ healthy: 1, dispatches: 9, failures: new Map([['tcp', 2]]) });
  });

  it('starts again at 0 if the same group returns later', () => {
    ended();
    now = KEPT_MS;
    add(tcp('db', 1));
    expect(at('db')).toMatchObject({ dispatches: 0, failures: new Map() });
  });

  it('keeps its label for a returning group, even if the bare name is free by then', () => {
    const first = add(tcp('db', 1, 'aa'));
    const second = add(tcp('db', 2, 'bb'));
    remove(first);
    remove(second);
    now = 1;
    add(tcp('db', 3, 'bb'));
    expect(at('db')?.healthy).toBe(0);
    expect(at('db@2')?.healthy).toBe(1);
  });

  it('passes its label and values to another group, so the former owner starts under a new label', () => {
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

  it('is found by the subdomain of an http group, even under another name', () => {
    const group = add(http('web', 'shop'));
    group.dispatches = 3;
    remove(group);
    add(http('another name', 'shop'));
    expect(labels()).toEqual(['web']);
    expect(at('web')?.dispatches).toBe(3);
  });

  it('is not continued by an https group with the subdomain of an http group', () => {
    const group = add(http('web', 'shop'));
    remove(group);
    add({ ...http('other', 'shop'), protocol: 'https' });
    expect(labels()).toEqual(['web', 'other']);
  });

  it('is removed, oldest first, once more than the maximum number of series is kept', () => {
    for (let n = 0; n < 150; n += 1) remove(add(tcp(`db${n}`, n + 1)));
    expect(labels()).toHaveLength(100);
    expect(labels()[0]).toBe('db50');
  });
});

it('counters never fall while a series lives, over 5000 random group events', () => {
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
    const after = new Map(values.map(({ group: label, dispatches }) => [label, dispatches]));
    expect([...before].filter(([label, dispatches]) => (after.get(label) ?? -1) < dispatches)).toEqual([]);
  }
});

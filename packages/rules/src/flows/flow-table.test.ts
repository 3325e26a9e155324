import { describe, expect, it } from 'vitest';
import type { Flow } from './flow.ts';
import { FlowAddresses } from './flow-addresses.ts';
import { FLOW_DENIED_MS, FLOW_WHEEL_SLOTS, type FlowRules, FlowTable } from './flow-table.ts';

const RULES: FlowRules = {
  flowsPerTunnel: 3,
  idleMs: 60_000,
  answeredIdleMs: 10_000,
  newFlowsPerSecond: 0,
  unconfirmedReplyBytes: 8192,
};

const makeTable = (rules: Partial<FlowRules> = {}, perAddress = 10_000) => {
  const ended: string[] = [];
  const addresses = new FlowAddresses<string>({ perAddress });
  const options = {
    rules: { ...RULES, ...rules },
    addresses,
    loopFacts: () => ({ ownAddresses: new Set(['10.0.0.1']), range: { from: 20_100, to: 20_199 }, pathPorts: [] }),
    onEnded: ({ address, port }: Flow<string>, end: string) => void ended.push(`${address}:${port} ${end}`),
  };
  return { table: new FlowTable<string>(options, 0), another: new FlowTable<string>(options, 0), addresses, ended };
};

/** Confirms a flow: a datagram, a reply, and a second datagram. */
const confirm = (table: FlowTable<string>, address: string, port: number, now: number): Flow<string> => {
  const flow = table.arrived(address, port, now) as Flow<string>;
  table.mayReply(flow, 10, now);
  table.arrived(address, port, now);
  expect(flow.isConfirmed).toBe(true);
  return flow;
};

describe('a UDP flow', () => {
  it('belongs to one address and port, and to every datagram from there', () => {
    const { table } = makeTable();
    const flow = table.arrived('192.0.2.1', 5000, 0);
    expect(table.arrived('::ffff:192.0.2.1', 5000, 1)).toBe(flow);
    expect(table.arrived('192.0.2.1', 5001, 1)).not.toBe(flow);
    expect(table.size).toBe(2);
  });

  it('is confirmed when the visitor sends after a reply, not before', () => {
    const { table } = makeTable();
    const flow = table.arrived('192.0.2.1', 5000, 0) as Flow<string>;
    table.arrived('192.0.2.1', 5000, 1);
    expect(flow.isConfirmed).toBe(false);
    table.mayReply(flow, 100, 2);
    expect(flow.isConfirmed).toBe(false);
    table.arrived('192.0.2.1', 5000, 3);
    expect(flow.isConfirmed).toBe(true);
  });

  it('ends after its idle time, and earlier if the visitor is silent after the reply', () => {
    const { table, ended } = makeTable();
    table.arrived('192.0.2.1', 1, 0);
    const answered = table.arrived('192.0.2.2', 2, 0) as Flow<string>;
    table.mayReply(answered, 10, 500);
    confirm(table, '192.0.2.3', 3, 0);
    table.expire(10_400);
    expect(ended).toEqual([]);
    table.expire(11_000);
    expect(ended).toEqual(['192.0.2.2:2 idle']);
    table.expire(59_999);
    expect(ended).toHaveLength(1);
    table.expire(60_000);
    expect(ended.slice(1).sort()).toEqual(['192.0.2.1:1 idle', '192.0.2.3:3 idle']);
    expect(table.size).toBe(0);
  });

  it('that got a reply never waits longer than the idle time', () => {
    const { table, ended } = makeTable({ idleMs: 5000 });
    const flow = table.arrived('192.0.2.1', 1, 0) as Flow<string>;
    table.mayReply(flow, 10, 0);
    table.expire(5000);
    expect(ended).toEqual(['192.0.2.1:1 idle']);
  });

  it('stays open with datagrams in either direction, and expires on time even if the table was not checked for an hour', () => {
    const { table, ended } = makeTable({ idleMs: 3_600_000 });
    const flow = confirm(table, '192.0.2.1', 1, 0);
    table.mayReply(flow, 10, 3_000_000);
    table.expire(6_500_000);
    expect(ended).toEqual([]);
    table.expire(6_600_000);
    expect(ended).toEqual(['192.0.2.1:1 idle']);
    table.arrived('192.0.2.1', 1, 10_000_000);
    table.expire(13_600_000);
    expect(ended).toHaveLength(2);
  });

  it('that a policy denied is dropped without asking again for 10 s, no matter how many datagrams arrive', () => {
    const { table, ended } = makeTable();
    const flow = table.arrived('192.0.2.1', 1, 0) as Flow<string>;
    table.deny(flow, 100);
    for (let now = 200; now < 10_100; now += 100) expect(table.arrived('192.0.2.1', 1, now)).toBeNull();
    expect(table.dropped.denied).toBe(99);
    expect(table.mayReply(flow, 1, 10_000)).toBe(false);
    expect(table.arrived('192.0.2.1', 1, 10_100)).not.toBe(flow);
    expect(ended).toEqual(['192.0.2.1:1 idle']);
  });
});

describe('a flow table at a limit', () => {
  it('evicts flows that a policy denied first, and keeps allowed flows that wait for their reply', () => {
    const { table, ended } = makeTable();
    const office = table.arrived('198.51.100.1', 1, 0) as Flow<string>;
    for (let port = 1; port <= 50; port += 1) {
      const stranger = table.arrived('192.0.2.1', port, port) as Flow<string>;
      table.deny(stranger, port);
    }
    expect([office.isEnded, table.size, ended.length]).toEqual([false, 3, 48]);
    expect(table.mayReply(office, 10, 100)).toBe(true);
    // The oldest denied flows are evicted first, so the latest denied flow is still known, and its datagram is dropped without asking the
    // policy again.
    expect([table.arrived('192.0.2.1', 50, 101), table.dropped.denied]).toEqual([null, 1]);
  });

  it('evicts the oldest unconfirmed flow, never a confirmed flow', () => {
    const { table, ended } = makeTable();
    confirm(table, '192.0.2.1', 1, 0);
    table.arrived('192.0.2.2', 2, 1);
    table.arrived('192.0.2.3', 3, 2);
    table.arrived('192.0.2.2', 2, 3);
    expect(table.arrived('192.0.2.4', 4, 4)).not.toBeNull();
    expect(ended).toEqual(['192.0.2.2:2 evicted']);
    confirm(table, '192.0.2.3', 3, 5);
    confirm(table, '192.0.2.4', 4, 5);
    expect(table.arrived('192.0.2.5', 5, 6)).toBeNull();
    expect([table.dropped.limit, table.size]).toEqual([1, 3]);
  });

  it('evicts the oldest unconfirmed flow of the same address, even on another tunnel, when the address is at its limit', () => {
    const { table, another, addresses, ended } = makeTable({}, 2);
    another.arrived('192.0.2.1', 1, 0);
    table.arrived('192.0.2.9', 9, 0);
    table.arrived('192.0.2.1', 2, 1);
    expect(table.arrived('192.0.2.1', 3, 2)).not.toBeNull();
    expect([ended, another.size, table.size]).toEqual([['192.0.2.1:1 evicted'], 0, 3]);
    confirm(table, '192.0.2.1', 2, 3);
    confirm(table, '192.0.2.1', 3, 3);
    // The tunnel is also full. A new flow that is refused for its address limit must not evict a flow of another address.
    expect(table.arrived('192.0.2.1', 4, 4)).toBeNull();
    expect([table.dropped.limit, ended.length]).toEqual([1, 1]);
    table.closeAll();
    expect([addresses.size, table.size]).toEqual([0, 0]);
  });
});

describe('a visitor with an unconfirmed address', () => {
  it('gets at most 8 KiB until it sends again', () => {
    const { table } = makeTable();
    const flow = table.arrived('192.0.2.1', 1, 0) as Flow<string>;
    expect([4096, 4096, 1, 0].map((bytes) => table.mayReply(flow, bytes, 1))).toEqual([true, true, false, true]);
    expect([table.dropped.unconfirmed, flow.dropped]).toEqual([1, 1]);
    table.arrived('192.0.2.1', 1, 2);
    expect(table.mayReply(flow, 65_507, 3)).toBe(true);
  });

  it('gets replies of any size if the operator sets the limit to 0', () => {
    const { table } = makeTable({ unconfirmedReplyBytes: 0 });
    const flow = table.arrived('192.0.2.1', 1, 0) as Flow<string>;
    expect(table.mayReply(flow, 65_507, 1)).toBe(true);
  });

  it('gets no reply on a flow that has ended', () => {
    const { table } = makeTable();
    const flow = table.arrived('192.0.2.1', 1, 0) as Flow<string>;
    table.close(flow);
    expect([table.mayReply(flow, 1, 1), table.dropped.unopened]).toEqual([false, 1]);
  });
});

describe('new flows', () => {
  it('of one prefix are limited to the rate, with a burst of twice the rate; other prefixes are unaffected', () => {
    const { table } = makeTable({ newFlowsPerSecond: 100, flowsPerTunnel: 10_000 });
    const open = (host: number, now: number): number =>
      Array.from({ length: 1000 }, (_, port) => table.arrived(`192.0.2.${host}`, port + 1, now)).filter(Boolean).length;
    expect(open(1, 0)).toBe(200);
    expect(table.arrived('198.51.100.1', 1, 0)).not.toBeNull();
    expect(open(2, 500)).toBe(50);
    // Datagrams of existing flows do not count as new flows.
    expect(table.arrived('192.0.2.1', 1, 500)).not.toBeNull();
    expect(table.dropped.rate).toBe(800 + 950);
  });

  it("from the edge's own ports are not opened", () => {
    const { table } = makeTable();
    expect([table.arrived('10.0.0.1', 20_150, 0), table.arrived('192.0.2.1', 0, 0)]).toEqual([null, null]);
    expect(table.dropped.loop).toBe(2);
  });
});

it('100,000 source addresses use no more flows than the limits allow, and evict no confirmed flow', () => {
  const { table, addresses } = makeTable({ flowsPerTunnel: 1000, newFlowsPerSecond: 100 });
  const kept = Array.from({ length: 50 }, (_, n) => confirm(table, `203.0.113.${n}`, 4000, 0));
  for (let n = 0; n < 100_000; n += 1) {
    const flow = table.arrived(`10.${64 + (n >> 16)}.${(n >> 8) & 255}.${n & 255}`, 1000 + (n % 50_000), n / 10);
    if (flow !== null) table.mayReply(flow, 500, n / 10);
  }
  expect([table.size, addresses.size]).toEqual([1000, 1000]);
  expect(kept.every((flow) => !flow.isEnded)).toBe(true);
});

it('the flow table lists the last active flows, newest first', () => {
  const { table } = makeTable({ flowsPerTunnel: 300 });
  for (let n = 0; n < 250; n += 1) table.arrived('192.0.2.1', 1000 + n, n);
  table.arrived('192.0.2.1', 1000, 900);
  const listed = table.list(200).map(({ port }) => port);
  expect([listed.length, listed[0], listed[1], listed.at(-1)]).toEqual([200, 1000, 1249, 1051]);
});

it('the timer wheel of the flow table has more one-second slots than the default idle time', () => {
  expect(FLOW_WHEEL_SLOTS).toBeGreaterThan(60);
});

describe('a flow table that takes no new flows', () => {
  it('drops new visitors as away without storing them, and keeps serving its existing flows', () => {
    const { table, addresses } = makeTable();
    const flow = table.arrived('192.0.2.1', 5000, 0);
    const denied = table.arrived('192.0.2.2', 5000, 0) as Flow<string>;
    table.deny(denied, 0);
    table.takesNew = false;
    expect([table.arrived('192.0.2.1', 5000, 1), table.arrived('192.0.2.3', 5000, 1)]).toEqual([flow, null]);
    expect([table.dropped.away, table.size, addresses.size]).toEqual([1, 2, 2]);
    // A flow with an expired denial counts as new.
    expect(table.arrived('192.0.2.2', 5000, FLOW_DENIED_MS)).toBeNull();
    expect([table.dropped.away, table.dropped.denied, table.size]).toEqual([2, 0, 1]);
    table.takesNew = true;
    expect(table.arrived('192.0.2.3', 5000, 20_000)).not.toBeNull();
  });
});

describe('a drop reported by the client', () => {
  const passed = (table: FlowTable<string>, datagrams: number): Flow<string> => {
    const flow = table.arrived('192.0.2.1', 5000, 0) as Flow<string>;
    table.passedIn(flow, 10 * datagrams, datagrams);
    return flow;
  };
  const drop = { address: '192.0.2.1', port: 5000, direction: 'in', reason: 'local', datagrams: 2 } as const;

  it('of visitor datagrams is subtracted from the passed datagrams, so that each counts once', () => {
    const { table } = makeTable();
    const flow = passed(table, 5);
    expect(table.reported(drop)).toBe(2);
    expect([flow.datagramsIn, flow.dropped, table.dropped.local]).toEqual([3, 2, 2]);
  });

  it('is capped at the number of datagrams that the client received', () => {
    const { table } = makeTable();
    const flow = passed(table, 5);
    expect([table.reported({ ...drop, datagrams: 1e9 }), table.reported(drop)]).toEqual([5, 0]);
    expect([flow.datagramsIn, table.dropped.local]).toEqual([0, 5]);
  });

  it('of service datagrams is counted in addition to passed datagrams, and after the end of the flow only for the tunnel', () => {
    const { table } = makeTable();
    const flow = passed(table, 5);
    expect(table.reported({ ...drop, direction: 'out', reason: 'path' })).toBe(0);
    expect([flow.datagramsIn, flow.dropped, table.dropped.path]).toEqual([5, 2, 2]);
    table.close(flow);
    expect(table.reported(drop)).toBe(2);
    expect([flow.dropped, table.dropped.local]).toEqual([2, 2]);
  });
});

import type { StreamReason } from '@tunnel/protocol';
import { beforeEach, describe, expect, it } from 'vitest';
import { CLIENT_LIMITS } from '../limits.ts';
import {
  FLOW_DRAIN_SILENCE_MS,
  FLOW_IDLE_GRACE_MS,
  FLOW_LOOK_EVERY_MS,
  OpenFlows,
  type SilentFlow,
} from './open-flows.ts';

class Flow implements SilentFlow {
  readonly ends: StreamReason[] = [];
  lastAt = 0;
  readonly #table: OpenFlows;

  constructor(table: OpenFlows, idleMs: number) {
    this.#table = table;
    table.add(this, idleMs);
  }

  silentFor(now: number): number {
    return now - this.lastAt;
  }

  end(reason: StreamReason): void {
    this.ends.push(reason);
    this.#table.delete(this);
  }
}

let table: OpenFlows;

beforeEach(() => {
  table = new OpenFlows(() => 1000);
});

const tickUntil = (ms: number): void => {
  for (let now = 0; now <= ms; now += 1000) table.tick(now);
};

describe('a silent UDP flow', () => {
  it('is ended shortly after its idle time plus a grace period, and not earlier', () => {
    const short = new Flow(table, 5000);
    const long = new Flow(table, 60_000);
    tickUntil(5000 + FLOW_IDLE_GRACE_MS - FLOW_LOOK_EVERY_MS);
    expect([short.ends, long.ends]).toEqual([[], []]);
    tickUntil(5000 + FLOW_IDLE_GRACE_MS + FLOW_LOOK_EVERY_MS);
    expect([short.ends.length, long.ends.length]).toEqual([1, 0]);
    tickUntil(60_000 + FLOW_IDLE_GRACE_MS + FLOW_LOOK_EVERY_MS);
    expect([short.ends.length, long.ends.length, table.size]).toEqual([1, 1, 0]);
  });

  it('gets its full idle time again when a datagram arrives', () => {
    const flow = new Flow(table, 5000);
    flow.lastAt = 30_000;
    tickUntil(30_000 + FLOW_IDLE_GRACE_MS);
    expect(flow.ends).toEqual([]);
  });

  it('does not delay the end of the client, while an active flow does', () => {
    const silent = new Flow(table, 3_600_000);
    const busy = new Flow(table, 3_600_000);
    silent.lastAt = 10_000;
    busy.lastAt = 10_000;
    table.tick(10_000);
    expect([silent.ends.length, busy.ends.length]).toEqual([0, 0]);
    table.drain();
    busy.lastAt = 10_000 + FLOW_DRAIN_SILENCE_MS;
    table.tick(10_000 + FLOW_DRAIN_SILENCE_MS);
    expect([silent.ends.length, busy.ends.length]).toEqual([1, 0]);
  });
});

it('the flow limit leaves enough file descriptors for the rest of the client', () => {
  expect(table.limit).toBe(750);
  expect(new OpenFlows(() => 1_000_000).limit).toBe(CLIENT_LIMITS.FLOWS_MAX);
});

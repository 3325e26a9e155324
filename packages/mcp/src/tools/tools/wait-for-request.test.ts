import { eventually } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import type { ToolOutcome } from '../call-tool.ts';
import { requestOf, ScriptedHost, type Served, serve } from '../scripted-host.fixture.ts';

const served: Served[] = [];

afterEach(async () => {
  for (const one of served.splice(0)) await one.close();
});

interface Progress {
  readonly progress: number;
  readonly total?: number | undefined;
  readonly message?: string | undefined;
}

const start = async (host: ScriptedHost, era: 'modern' | 'old', told: ToolOutcome[] = []): Promise<Served> => {
  const one = await serve(host, era, { onCall: (outcome) => told.push(outcome) });
  served.push(one);
  return one;
};

describe.each(['modern', 'old'] as const)('wait_for_request for a client of the %s era', (era) => {
  it('reports progress every 4.5 s, and returns the request when it arrives', async () => {
    const host = new ScriptedHost();
    const { client, clock } = await start(host, era);
    const heard: Progress[] = [];
    const answer = client.callTool(
      { name: 'wait_for_request', arguments: { tunnel: 'web', method: 'post', timeout_secs: 30 } },
      { onprogress: (progress) => heard.push(progress) },
    );
    await eventually(() => expect(host.waits).toHaveLength(1));
    await clock.advance(20_000);
    host.waits[0]?.answer(requestOf());
    expect((await answer).structuredContent).toEqual({ request: requestOf(), waited_ms: 20_000, untrusted: true });
    expect(host.waits[0]?.withinMs).toBe(30_000);
    const times = heard.map(({ progress }) => progress);
    expect(times).toEqual([0, 4.5, 9, 13.5, 18]);
    expect(heard.every(({ total, message }) => total === 30 && (message ?? '').includes('of 30 s'))).toBe(true);
    expect(clock.pendingTimers).toBe(0);
  });

  it('returns null if no request arrives, which is not an error', async () => {
    const host = new ScriptedHost();
    const { client, clock } = await start(host, era);
    const answer = client.callTool({ name: 'wait_for_request', arguments: { tunnel: 'web' } });
    await eventually(() => expect(host.waits).toHaveLength(1));
    await clock.advance(60_000);
    host.waits[0]?.answer(null);
    expect(await answer).toMatchObject({ structuredContent: { request: null, waited_ms: 60_000 } });
    expect(host.waits[0]?.withinMs).toBe(60_000);
    expect(clock.pendingTimers).toBe(0);
  });

  it('ends when it is cancelled: of fifty calls, the 25 others get one answer each, and no timer is left', async () => {
    const host = new ScriptedHost();
    const told: ToolOutcome[] = [];
    const { client, clock } = await start(host, era, told);
    const calls = Array.from({ length: 50 }, (_, index) => {
      const cancel = new AbortController();
      const given = { name: 'wait_for_request', arguments: { tunnel: 'web' } };
      const answer = client.callTool(given, { signal: cancel.signal, onprogress: () => {} }).then(
        () => 'answered',
        () => 'cancelled',
      );
      return { index, cancel, answer };
    });
    await eventually(() => expect(host.waits).toHaveLength(50));
    expect(clock.pendingTimers).toBe(50);
    for (const { index, cancel } of calls) if (index % 2 === 1) cancel.abort();
    await eventually(() => expect(told).toHaveLength(25));
    expect(clock.pendingTimers).toBe(25);
    for (const wait of host.waits) wait.answer(null);
    const outcomes = await Promise.all(calls.map(({ answer }) => answer));
    expect(outcomes).toEqual(calls.map(({ index }) => (index % 2 === 1 ? 'cancelled' : 'answered')));
    expect(clock.pendingTimers).toBe(0);
    expect(told.map(({ outcome }) => outcome).toSorted()).toEqual([
      ...Array.from({ length: 25 }, () => 'ok'),
      ...Array.from({ length: 25 }, () => 'refused'),
    ]);
  });
});

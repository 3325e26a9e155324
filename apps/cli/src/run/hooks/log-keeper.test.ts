import type { Tunnel } from '@tunnel/client';
import { Fault } from '@tunnel/errors';
import { FakeClock } from '@tunnel/testkit';
import { describe, expect, it } from 'vitest';
import type { LogEntry } from '../../agent/answers.ts';
import { CLI_LIMITS } from '../../limits.ts';
import type { ShownRequest } from '../../output/output.ts';
import { LogKeeper } from './log-keeper.ts';

const tunnel = { name: 'web', tunnelId: 'tun_1' } as unknown as Tunnel;

const request = (id: string): ShownRequest =>
  ({
    type: 'request-finished',
    id,
    tunnel,
    at: 1000,
    method: 'GET',
    path: '/',
    status: 200,
    durationMs: 5,
    requestBytes: 0,
    responseBytes: 2,
    aborted: false,
    replayOf: null,
  }) as unknown as ShownRequest;

const keeper = (): LogKeeper => new LogKeeper(new FakeClock());

describe('the log of a run', () => {
  it('has a text line and a JSON event for each incident', () => {
    const log = keeper();
    log.onStatus({ type: 'connected', sessionId: 's', resumed: false });
    log.onStatus({ type: 'tunnel-error', tunnel, fault: new Fault('TUNNEL_PORT_IN_USE', { port: 5 }), final: true });
    log.onStatus({ type: 'closing' });
    log.onRequest(request('req_1'));
    expect(log.last(10)).toMatchObject([
      { text: 'connected', event: null },
      {
        text: expect.stringMatching(/^tunnel: web: port 5 is already in use\n {2}Choose another port/),
        event: { event: 'error', code: 'TUNNEL_PORT_IN_USE' },
      },
      { text: 'web GET / 200 5.0 ms', event: { event: 'request', id: 'req_1' } },
    ]);
  });

  it('keeps the latest 1,000 entries', () => {
    const log = keeper();
    for (let index = 0; index < 3500; index += 1) log.onRequest(request(`req_${index}`));
    const all = log.last(CLI_LIMITS.AGENT_LOG_LINES_MAX);
    expect(all).toHaveLength(CLI_LIMITS.AGENT_LOG_LINES_MAX);
    expect(all[0]?.event).toMatchObject({ id: 'req_2500' });
    expect(log.last(2).map(({ event }) => event?.['id'])).toEqual(['req_3498', 'req_3499']);
    expect(log.last(0)).toEqual([]);
  });

  it('sends new entries to followers until they stop or the log closes', () => {
    const log = keeper();
    const seen: (LogEntry | null)[] = [];
    const other: (LogEntry | null)[] = [];
    const stop = log.follow((entry) => seen.push(entry));
    log.follow((entry) => other.push(entry));
    log.onRequest(request('req_1'));
    stop();
    log.onRequest(request('req_2'));
    log.close();
    log.onRequest(request('req_3'));
    expect(seen).toMatchObject([{ event: { id: 'req_1' } }]);
    expect(other).toMatchObject([{ event: { id: 'req_1' } }, { event: { id: 'req_2' } }, null]);
  });
});

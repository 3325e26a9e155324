import { EventEmitter, once } from 'node:events';
import { Fault } from '@tunnel/errors';
import { WIRE_LIMITS } from '@tunnel/protocol';
import { createLogger, LogLimiter } from '@tunnel/runtime';
import { eventually, FakeClock, rethrow } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { WebSocket } from 'ws';
import { type ControlFixture, paceOf, startControl } from './control.fixture.ts';
import { ControlConnection } from './control-connection.ts';
import { RawClient } from './raw-client.fixture.ts';

let clock: FakeClock;
let fixture: ControlFixture;

beforeEach(async () => {
  clock = new FakeClock();
  fixture = await startControl({ clock, failuresPerMinute: 3 });
});
afterEach(() => fixture.stop());

const connect = (): Promise<RawClient> => RawClient.connect(fixture.port);
const enter = (token = 'op') => RawClient.enter(fixture.port, token);

describe('an optional message', () => {
  it('is dropped for a client that does not read, without affecting its connection or other clients', async () => {
    const { client, welcome } = await RawClient.enter(fixture.port, 'alice', undefined, ['edge-answers']);
    const { client: other, welcome: others } = await RawClient.enter(fixture.port, 'bob', undefined, ['edge-answers']);
    const message = { type: 'EdgeAnsweredMore', tunnel_id: 'tun_1', count: 1 } as const;
    const offer = (sessionId: string) =>
      fixture.control.offer(sessionId, { ...message, tunnel_id: 't'.repeat(100) }, 'edge-answers');
    client.ws.pause();
    let sent = 0;
    // The kernel buffers a few MiB at most. Beyond that, the edge queues no more than its bound.
    while (offer(welcome.session_id) === 'sent' && sent < 1_000_000) sent += 1;
    expect(sent).toBeLessThan(1_000_000);
    expect([offer(welcome.session_id), offer(welcome.session_id)]).toEqual(['full', 'full']);
    expect(offer(others.session_id)).toBe('sent');
    await other.next('EdgeAnsweredMore');
    expect(fixture.control.figures.sessions).toBe(2);
    client.ws.resume();
    await eventually(() => expect(client.heard.length).toBe(sent));
    expect(offer(welcome.session_id)).toBe('sent');
  });

  it('is not sent to a client without the capability or to a lost session', async () => {
    const { welcome } = await enter();
    const message = { type: 'EdgeAnsweredMore', tunnel_id: 'tun_1', count: 1 } as const;
    expect(fixture.control.offer(welcome.session_id, message, 'edge-answers')).toBe('unwanted');
    expect(fixture.control.offer('ses_none', message, 'edge-answers')).toBe('unwanted');
  });
});

describe('the first frame', () => {
  it('with a valid key gets a session, a resume secret and carrier tokens', async () => {
    const { welcome } = await enter();
    expect(welcome).toMatchObject({
      version: 1,
      resumed: false,
      region_id: 'local',
      resume_window_secs: 30,
      ping_interval_secs: 10,
      dead_after_secs: 25,
      carriers: { count: 4, path: '/_carrier' },
    });
    expect(welcome.session_id).toMatch(/^ses_\w{20}$/);
    expect(new Set(welcome.carriers.tokens).size).toBe(4);
    expect(fixture.control.figures.sessions).toBe(1);
  });

  it('with a wrong key is rejected permanently', async () => {
    const client = await connect();
    client.auth('wrong');
    expect(await client.next('AuthError')).toMatchObject({ code: 'AUTH_TOKEN_INVALID', retryable: false });
    expect((await client.closed).code).toBe(4401);
  });

  it('is rejected with a retryable error while keys cannot be checked', async () => {
    const client = await connect();
    client.auth('away');
    expect(await client.next('AuthError')).toMatchObject({ code: 'AUTH_BACKEND_AWAY', retryable: true });
  });

  it('must offer a supported protocol version', async () => {
    const client = await connect();
    client.send({ type: 'Auth', versions: [7, 8], token: 'op' });
    const error = await client.next('AuthError');
    expect(error.message).toBe('protocol versions 7, 8 are not supported (this edge supports 1)');
    expect((await client.closed).code).toBe(4401);
  });

  it('must be Auth', async () => {
    const client = await connect();
    client.register();
    expect(await client.next('AuthError')).toMatchObject({ code: 'CONTROL_NOT_AUTHENTICATED' });
    expect((await client.closed).code).toBe(4401);
  });

  it('must arrive within 10 s', async () => {
    const client = await connect();
    await eventually(() => expect(clock.pendingTimers).toBe(2));
    await clock.advance(9_999);
    expect(client.ws.readyState).toBe(client.ws.OPEN);
    await clock.advance(1);
    expect((await client.next('Error')).code).toBe('CONTROL_AUTH_TIMEOUT');
    expect((await client.closed).code).toBe(4408);
  });

  it('closes the connection if it is not a control frame', async () => {
    for (const text of ['not json', '[]', '{"type":"Auth"}', '{"type":"Ping"}']) {
      const client = await connect();
      client.ws.send(text);
      expect((await client.next('Error')).code).toBe('CONTROL_BAD_FRAME');
      expect((await client.closed).code).toBe(4400);
    }
    const client = await connect();
    client.ws.send(Buffer.from('{}'), { binary: true });
    expect((await client.closed).code).toBe(4400);
  });

  it('can follow a frame of a newer version', async () => {
    const client = await connect();
    client.ws.send('{"type":"Hello2"}');
    expect((await client.next('Error')).code).toBe('CONTROL_UNKNOWN_FRAME');
    client.auth('op');
    await client.next('AuthOk');
  });
});

describe('wrong keys', () => {
  it('from one address are counted, and over the limit even a valid key is rejected for a while', async () => {
    for (let n = 0; n < 3; n += 1) {
      const client = await connect();
      client.auth('wrong');
      await client.next('AuthError');
    }
    const client = await connect();
    client.auth('op');
    const error = await client.next('AuthError');
    expect(error).toMatchObject({ code: 'AUTH_TOO_MANY_FAILURES', retryable: true });
    expect(error.retry_after_secs).toBeGreaterThan(50);
    await clock.advance(60_000);
    await enter();
  });

  it('do not include invalid handshakes or keys that could not be checked', async () => {
    for (let n = 0; n < 4; n += 1) {
      const stranger = await connect();
      stranger.ws.send('GET / HTTP/1.1');
      await stranger.closed;
      const unlucky = await connect();
      unlucky.auth('away');
      await unlucky.closed;
    }
    await enter();
  });
});

describe('an authenticated connection', () => {
  it('responds to unknown and invalid frames with an error and stays open', async () => {
    const { client } = await enter();
    client.ws.send('{"type":"FromTheFuture"}');
    expect(await client.next('Error')).toMatchObject({ code: 'CONTROL_UNKNOWN_FRAME', fatal: false });
    client.ws.send('{"type":"RegisterTunnel"}');
    expect(await client.next('Error')).toMatchObject({ code: 'CONTROL_BAD_FRAME', fatal: false });
    client.auth('op');
    expect((await client.next('Error')).message).toContain('already has a session');
    client.send({ type: 'CarrierTokens', tokens: [] });
    expect((await client.next('Error')).message).toContain('clients cannot send this frame');
    await client.settle();
  });

  it('handles frames in order, including frames sent together with Auth', async () => {
    const client = await connect();
    client.auth('op');
    client.register({}, 'a');
    client.register({}, 'b');
    client.send({ type: 'Ping', id: 5 });
    await client.next('Pong');
    await client.settle();
    expect(fixture.tunnels.size).toBe(2);
  });

  it('is closed on a frame over 64 KiB', async () => {
    const { client } = await enter();
    client.ws.send(JSON.stringify({ type: 'Ping', id: 1, filler: 'x'.repeat(64 * 1024) }));
    expect((await client.closed).code).toBe(1009);
    await eventually(() => expect(fixture.control.figures.sessions).toBe(0));
  });

  it('is pinged every 10 s and stays open while the client responds', async () => {
    const { client } = await enter();
    for (let n = 1; n <= 6; n += 1) {
      await clock.advance(10_000);
      expect((await client.next('Ping')).id).toBe(n);
      client.send({ type: 'Pong', id: n });
      await client.settle();
    }
    expect(client.ws.readyState).toBe(client.ws.OPEN);
  });

  it('is not pinged while the pings of the client are answered', async () => {
    const { client } = await enter();
    for (let n = 1; n <= 6; n += 1) {
      await clock.advance(9_500);
      client.send({ type: 'Ping', id: n });
      expect((await client.next('Pong')).id).toBe(n);
    }
    expect(client.heard.filter(({ type }) => type === 'Ping')).toEqual([]);
    await clock.advance(10_000);
    expect((await client.next('Ping')).id).toBe(1);
  });

  it('is pinged after 10 s without a message to the client, although the client is heard', async () => {
    const { client } = await enter();
    for (let n = 1; n <= 4; n += 1) {
      await clock.advance(2_500);
      const answered = once(client.ws, 'pong');
      client.ws.ping();
      await answered;
    }
    expect((await client.next('Ping')).id).toBe(1);
  });

  it('is closed after 25 s of silence', async () => {
    const { client } = await enter();
    await clock.advance(24_999);
    expect(fixture.control.figures.sessions).toBe(1);
    await clock.advance(1);
    expect(fixture.control.figures.sessions).toBe(0);
    expect((await client.closed).code).toBe(4408);
  });

  it('is closed once 1 MiB waits for a client that does not read', () => {
    const closes: unknown[] = [];
    const ws = Object.assign(new EventEmitter(), {
      bufferedAmount: 0,
      send(text: string) {
        this.bufferedAmount += text.length;
      },
      close: (...how: unknown[]) => closes.push(how),
      resume: () => {},
    });
    let losses = 0;
    const log = new LogLimiter(createLogger({ level: 'silent', format: 'json' }), () => 0);
    const connection = new ControlConnection({
      id: 1,
      ws: ws as unknown as WebSocket,
      clock,
      log,
      peer: { address: '127.0.0.1', clientAddr: '127.0.0.1:1' },
      handlers: { onAuth: async () => true, onMessage: () => {}, onHeldBack: () => {}, onLost: () => (losses += 1) },
      pace: paceOf(),
      registrationPace: paceOf(),
      report: rethrow,
    });
    const fault = new Fault('CONTROL_BAD_FRAME', { reason: 'x'.repeat(900) });
    while (connection.isOpen) connection.sendFault(fault);
    expect(ws.bufferedAmount).toBeGreaterThan(WIRE_LIMITS.CONTROL_SEND_QUEUE_MAX_BYTES);
    expect(ws.bufferedAmount).toBeLessThan(WIRE_LIMITS.CONTROL_SEND_QUEUE_MAX_BYTES + 2000);
    expect(closes).toEqual([[4429, 'CONTROL_SLOW']]);
    expect(losses).toBe(1);
  });
});

describe('an internal error', () => {
  const start = (onMessage: () => Promise<void> | void) => {
    const sent: { type: string; code?: string }[] = [];
    const reports: string[] = [];
    const closes: unknown[] = [];
    let isBroken = false;
    const ws = Object.assign(new EventEmitter(), {
      bufferedAmount: 0,
      send: (text: string) => {
        if (isBroken) throw new Error('raised on purpose');
        sent.push(JSON.parse(text) as { type: string });
      },
      close: (...how: unknown[]) => closes.push(how),
      terminate: () => closes.push('terminated'),
      pause: () => {},
      resume: () => {},
    });
    let losses = 0;
    new ControlConnection({
      id: 1,
      ws: ws as unknown as WebSocket,
      clock,
      pace: paceOf(),
      registrationPace: paceOf(),
      log: new LogLimiter(createLogger({ level: 'silent', format: 'json' }), () => 0),
      peer: { address: '127.0.0.1', clientAddr: '127.0.0.1:1' },
      handlers: { onAuth: async () => true, onMessage, onHeldBack: () => {}, onLost: () => (losses += 1) },
      report: (_error, where) => reports.push(where),
    });
    const hear = (message: object) => ws.emit('message', Buffer.from(JSON.stringify(message)), false);
    hear({ type: 'Auth', versions: [1], token: 't', agent: 'a' });
    return { sent, reports, closes, hear, losses: () => losses, breakSocket: () => (isBroken = true) };
  };

  it('in the handler of a frame is reported as control.frame and ends the connection', async () => {
    const { sent, reports, closes, hear, losses } = start(async () => {
      throw new Error('raised on purpose');
    });
    await Promise.resolve();
    hear({ type: 'RequestCarriers', count: 1 });
    await eventually(() => expect(reports).toEqual(['control.frame']));
    expect(sent.at(-1)).toMatchObject({ type: 'Error', code: 'INTERNAL', fatal: true });
    expect([closes.length, losses()]).toEqual([1, 1]);
  });

  it('in a timer is reported as control.timer and ends the connection, even if the client cannot be told', async () => {
    const { reports, closes, losses, breakSocket } = start(() => {});
    await Promise.resolve();
    breakSocket();
    await clock.advance(60_000);
    expect(reports).toEqual(['control.timer']);
    expect([closes, losses()]).toEqual([['terminated'], 1]);
  });
});

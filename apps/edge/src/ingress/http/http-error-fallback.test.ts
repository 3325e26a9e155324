// Visitors of TCP tunnels without an available service, and the answers that a real client gets.
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { Fault } from '@tunnel/errors';
import type { ByteDuplex } from '@tunnel/mux';
import { eventually, FakeClock } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { EDGE_LIMITS } from '../../limits.ts';
import {
  endOf,
  expectOver,
  type Member,
  newGroup,
  type OnStream,
  passSilence,
  RelayStage,
  type RelayStand,
  refusing,
} from '../tcp/relay.fixture.ts';
import { HttpErrorFallback, TCP_HTTP_FALLBACK_MS } from './http-error-fallback.ts';

const stage = new RelayStage();
afterEach(() => stage.clear());

type Path = RelayStand & { readonly members: readonly Member[] };

/** Starts a group with a single, unhealthy member. */
const startDown = async (): Promise<Path> => {
  const group = newGroup();
  const member = await stage.startMember(refusing, { group, healthy: false });
  return { ...(await stage.startRelay(group)), members: [member] };
};

const startSolo = async (onStream: OnStream): Promise<Path> => {
  const member = await stage.startMember(onStream);
  return { ...(await stage.startRelay(member.tunnel)), members: [member] };
};

const ask = (port: number, headers: Record<string, string> = {}, method = 'GET') =>
  new Promise<{ status: number; code: string; connection: string; body: string }>((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, method, headers, agent: false }, (response) => {
      const { statusCode = 0, headers: got } = response;
      const code = String(got['x-tunnel-error']);
      text(response).then(
        (body) => resolve({ status: statusCode, code, connection: got.connection ?? '', body }),
        reject,
      );
    });
    sent.on('error', reject);
    sent.end();
  });

describe('a visitor that speaks HTTP to a TCP tunnel gets a 502', () => {
  it('as a page or as JSON when no member is healthy', async () => {
    const path = await startDown();
    const page = await ask(path.port);
    expect(page).toMatchObject({ status: 502, code: 'GROUP_UNHEALTHY', connection: 'close' });
    expect(page.body).toContain('No healthy group member is available for this address.');
    const { body } = await ask(path.port, { accept: 'application/json' });
    expect(JSON.parse(body)).toMatchObject({ code: 'GROUP_UNHEALTHY' });
    await expectOver(path, path.members);
    expect([...path.relay.totals.refused]).toEqual([['no-healthy', 2]]);
    expect(path.members[0]?.heads).toEqual([]);
  });

  it('without a body after HEAD, even if its request head is incomplete', async () => {
    const path = await startDown();
    expect(await ask(path.port, {}, 'HEAD')).toMatchObject({ status: 502, body: '' });
    const visitor = path.visit();
    visitor.end('HEAD / HTTP/1.1\r\nHo');
    expect(await text(visitor)).toMatch(/^HTTP\/1\.1 502 Bad Gateway\r\n[^]*\r\n\r\n$/);
    await expectOver(path, path.members);
  });

  it('with a code that says if the client could not dial or is away', async () => {
    const path = await startSolo(refusing);
    expect(await ask(path.port)).toMatchObject({ status: 502, code: 'LOCAL_UNREACHABLE' });
    for (const { upstream } of path.members) upstream.mux = null;
    expect(await ask(path.port)).toMatchObject({ status: 502, code: 'TUNNEL_AWAY' });
    await expectOver(path, path.members);
    expect([...path.relay.totals.refused.keys()]).toEqual(['dial-refused', 'no-carrier']);
  });

  it('even if its method arrives in pieces', async () => {
    const path = await startDown();
    const visitor = path.visit();
    visitor.setNoDelay(true);
    for (const piece of ['O', 'PTIO', 'NS', ' * HTTP/1.1\r\nHost: x\r\n', '\r\n']) {
      visitor.write(piece);
      await eventually(() => expect(visitor.writableLength).toBe(0));
    }
    visitor.end();
    expect(await text(visitor)).toContain('x-tunnel-error: GROUP_UNHEALTHY');
    await expectOver(path, path.members);
  });

  it('at the time limit if its request head is incomplete', async () => {
    const path = await startDown();
    const visitor = path.visit();
    visitor.write('PATCH /slow HTTP/1.1\r\n');
    const answer = text(visitor);
    await eventually(() => expect(path.bytesRead()).toBe(22));
    await passSilence(path);
    expect(await answer).toContain('502 Bad Gateway');
    visitor.end();
    await expectOver(path, path.members);
  });

  it('even while it sends a large body', async () => {
    const path = await startDown();
    const visitor = path.visit();
    const answer = text(visitor);
    visitor.write('POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 8388608\r\n\r\n');
    visitor.end(Buffer.alloc(8 * 1024 * 1024));
    expect(await answer).toMatch(/^HTTP\/1\.1 502 [^]*<\/html>\n$/);
    await expectOver(path, path.members);
  });

  it('and its connection closes after the linger time', async () => {
    const path = await startDown();
    const visitor = path.visit();
    const ended = endOf(visitor);
    visitor.write('GET / HTTP/1.0\r\n\r\n');
    expect(await ended).toBe('end');
    // The visitor's half of the connection stays open.
    await path.clock.advance(EDGE_LIMITS.HTTP_LINGER_MS - 1);
    expect([path.relay.connections, visitor.destroyed]).toEqual([1, false]);
    await path.clock.advance(1);
    await expectOver(path, path.members);
  });
});

describe('a visitor that speaks no HTTP to a TCP tunnel without a service is reset', () => {
  it.each(['SSH-2.0-OpenSSH_9.6\r\n', '\x16\x03\x01\x02\x00', 'get / HTTP/1.1\r\n\r\n', 'PRI * HTTP/2.0\r\n', 'GETX'])(
    'at once after sending %j',
    async (words) => {
      const path = await startDown();
      const visitor = path.visit();
      const ended = endOf(visitor);
      visitor.write(words);
      expect(await ended).toBe('ECONNRESET');
      await expectOver(path, path.members);
    },
  );

  it.each(['', 'GE'])('at the time limit after sending %j', async (words) => {
    const path = await startDown();
    const visitor = path.visit();
    const ended = endOf(visitor);
    visitor.write(words);
    await eventually(() => expect(path.clock.pendingTimers).toBe(1));
    await path.clock.advance(TCP_HTTP_FALLBACK_MS - 1);
    expect(path.relay.connections).toBe(1);
    await path.clock.advance(1);
    expect(await ended).toBe('ECONNRESET');
    await expectOver(path, path.members);
  });

  it('when it closes the connection without a request', async () => {
    const path = await startDown();
    const visitor = path.visit();
    const ended = endOf(visitor);
    visitor.end('POST');
    expect(await ended).toBe('ECONNRESET');
    await expectOver(path, path.members);
  });
});

it('a visitor that leaves before sending any bytes is cleaned up completely', async () => {
  const path = await startDown();
  const visitor = path.visit();
  await eventually(() => expect(path.relay.connections).toBe(1));
  visitor.resetAndDestroy();
  await expectOver(path, path.members);
});

it('a drain does not wait for visitors without a service, and resets later visitors at once', async () => {
  const path = await startDown();
  const listening = endOf(path.visit());
  const lingering = path.visit();
  lingering.write('GET / HTTP/1.0\r\n\r\n');
  await eventually(() => expect(lingering.bytesRead).toBeGreaterThan(0));
  await eventually(() => expect(path.relay.connections).toBe(2));
  path.relay.drain();
  await path.relay.whenIdle();
  expect(await listening).toBe('ECONNRESET');
  expect(await endOf(path.visit())).toBe('ECONNRESET');
  await expectOver(path, path.members);
});

it('a fault at the time limit ends only this visitor and is reported as fallback.timer', async () => {
  const clock = new FakeClock();
  const reports: string[] = [];
  let resets = 0;
  let ends = 0;
  const visitor: ByteDuplex = {
    read: () => {},
    write: () => true,
    resume: () => {},
    end: () => {},
    reset: () => {
      resets += 1;
      if (resets === 1) throw new Error('raised on purpose');
    },
  };
  const report = (_error: unknown, where: string): void => void reports.push(where);
  new HttpErrorFallback(visitor, new Fault('TUNNEL_AWAY'), clock, report, () => (ends += 1)).start();
  await clock.advance(TCP_HTTP_FALLBACK_MS);
  expect([reports, resets, ends]).toEqual([['fallback.timer'], 2, 1]);
});

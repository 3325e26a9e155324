// Failover to the next member of a group, for HTTP/1.1 visitors.

import * as http from 'node:http';
import * as net from 'node:net';
import type { MuxStream } from '@tunnel/mux';
import { deterministicBytes, eventually, hashOf, rethrow } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MEMBER_TRIES_MS } from '../../routing/balancer.ts';
import { type GroupStand, type StandMember, startGroupStand } from './group.fixture.ts';
import { dialLocal, talk } from './http.fixture.ts';
import { type RecordingService, startRecordingService, takeStream } from './service.fixture.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

let services: RecordingService[];
let stand: GroupStand;
let one: StandMember;
let two: StandMember;
let three: StandMember;

beforeEach(async () => {
  services = await Promise.all(['one', 'two', 'three'].map((name) => startRecordingService(name)));
  // Members are chosen in the order one, two, three.
  const random = (): number => 0;
  const members = services.map(({ port }, at) => ({ localPort: port, accountId: `of ${at + 1}` }));
  stand = await startGroupStand(members, { random });
  [one, two, three] = stand.members as [StandMember, StandMember, StandMember];
  cleanups.push(() => stand.stop(), ...services.map((service) => () => service.close()));
});

const requestsOf = (): number[] => stand.members.map(({ tunnel }) => tunnel.counters.requests);
const offeredTo = (): number[] => stand.members.map(({ offered }) => offered);
const askedOf = (): number[] => services.map(({ asked }) => asked.length);
const dispatchesOf = (): number[] =>
  [1, 2, 3].map((at) => stand.group.tally({ kind: 'account', accountId: `of ${at}` }).totalDispatches);

const head = (line: string, ...fields: string[]): string =>
  `${[`${line} HTTP/1.1`, 'Host: web.edge.test', ...fields].join('\r\n')}\r\n\r\n`;
const GET = head('GET /x', 'Connection: close');

const upload = (body: Buffer, headers: http.OutgoingHttpHeaders): Promise<{ status: number; body: string }> =>
  new Promise((resolve, reject) => {
    const options = { port: stand.port, host: '127.0.0.1', method: 'POST', path: '/up', agent: false };
    const request = http.request({ ...options, headers: { host: 'web.edge.test', ...headers } }, (response) => {
      let text = '';
      response.on('data', (chunk: Buffer) => {
        text += chunk.toString('latin1');
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: text }));
    });
    request.on('error', reject);
    request.end(body);
  });

describe('a request that no service has received', () => {
  it('goes to the next member and counts only there', async () => {
    one.refuse();
    expect(await talk(stand.port, GET)).toMatch(/\r\n\r\ntwo$/);
    expect(offeredTo()).toEqual([1, 1, 0]);
    expect([requestsOf(), stand.ingress.totals.requests]).toEqual([[0, 1, 0], 1]);
    expect(dispatchesOf()).toEqual([0, 1, 0]);
    expect(stand.captured(one)).toEqual([]);
    expect(stand.captured(two)).toMatchObject([{ status: 200, fault: null }]);
    expect(stand.members.map(({ tunnel }) => tunnel.counters.bytes > 0)).toEqual([false, true, false]);
  });

  it('counts in pendingFailover of a member until that member answers or the next member gets the request', async () => {
    const pendingFailover = (): number[] => stand.members.map(({ tunnel }) => tunnel.counters.pendingFailover);
    const held: MuxStream[] = [];
    one.onStream = (stream) => held.push(stream);
    const answer = talk(stand.port, GET);
    await eventually(() => expect(held).toHaveLength(1));
    expect([requestsOf(), pendingFailover()]).toEqual([
      [1, 0, 0],
      [1, 0, 0],
    ]);
    held[0]?.refuse({ code: 'dial-refused', text: 'ECONNREFUSED' });
    expect(await answer).toMatch(/\r\n\r\ntwo$/);
    expect([requestsOf(), pendingFailover()]).toEqual([
      [0, 1, 0],
      [0, 0, 0],
    ]);
  });

  it('no longer counts in pendingFailover when all members refuse or the visitor leaves', async () => {
    for (const member of stand.members) member.refuse();
    expect(await talk(stand.port, GET)).toMatch(/^HTTP\/1.1 502 /);
    one.onStream = () => {};
    const visitor = net.connect({ port: stand.port, host: '127.0.0.1' });
    visitor.write(GET);
    await eventually(() => expect(one.tunnel.counters.pendingFailover).toBe(1));
    visitor.destroy();
    await eventually(() => expect(one.tunnel.counters.pendingFailover).toBe(0));
    expect(stand.members.map(({ tunnel }) => tunnel.counters.pendingFailover)).toEqual([0, 0, 0]);
  });

  it('moves to the next member with its whole body, of known length or in chunks', async () => {
    one.refuse();
    two.refuse();
    const sent = deterministicBytes(1_000_003, 5);
    expect(await upload(sent, { 'content-length': sent.length })).toEqual({ status: 200, body: 'three' });
    expect(await upload(sent, { 'transfer-encoding': 'chunked' })).toEqual({ status: 200, body: 'three' });
    expect(services[2]?.asked.map(({ bodyHash }) => bodyHash)).toEqual([hashOf(sent), hashOf(sent)]);
    expect([askedOf(), requestsOf()]).toEqual([
      [0, 0, 2],
      [0, 0, 2],
    ]);
    const captured = stand.captured(three);
    expect(captured.map(({ hasWholeBody }) => hasWholeBody)).toEqual([true, true]);
    expect(captured.map(({ requestBody }) => requestBody?.bytes)).toContain(sent.length);
    expect([...stand.captured(one), ...stand.captured(two)]).toEqual([]);
  });

  it('moves to the next member even if its body was complete before the first member refused', async () => {
    const offers: (() => void)[] = [];
    one.onStream = (stream) => offers.push(() => stream.refuse({ code: 'dial-timeout', text: 'late' }));
    const answer = upload(Buffer.from('all of it'), { 'content-length': 9 });
    await eventually(() => expect(offers).toHaveLength(1));
    offers[0]?.();
    expect(await answer).toEqual({ status: 200, body: 'two' });
    expect(services[1]?.asked[0]?.bodyHash).toBe(hashOf(Buffer.from('all of it')));
  });

  it('moves to another member, even as a POST, if its member dies before the request was sent', async () => {
    // The client starts to dial, and dies.
    one.onStream = () => one.die();
    // The last member in the order of choice takes the place of a member that leaves.
    expect(await upload(Buffer.from('pay'), { 'content-length': 3 })).toEqual({ status: 200, body: 'three' });
    expect(dispatchesOf()).toEqual([0, 0, 1]);
  });

  it('gets 502 when every member refuses, after exactly one try each', async () => {
    for (const member of stand.members) member.refuse();
    const answer = await talk(stand.port, head('POST /x', 'Content-Length: 3', 'Connection: close').concat('abc'));
    expect(answer).toMatch(/^HTTP\/1\.1 502 .*x-tunnel-error: LOCAL_UNREACHABLE\r\n/s);
    expect(answer.match(/HTTP\/1\.1/g)).toHaveLength(1);
    expect([offeredTo(), stand.ingress.totals.requests]).toEqual([[1, 1, 1], 1]);
    expect(stand.members.flatMap((member) => stand.captured(member))).toHaveLength(1);
    expect(stand.group.tally({ kind: 'operator' }).totalDispatches).toBe(1);
  });

  it('gets 502 without further members when the tries so far took too long', async () => {
    const held: MuxStream[] = [];
    const hold = (stream: MuxStream): void => void held.push(stream);
    const four = await stand.join({});
    one.refuse();
    for (const member of [two, three, four]) member.onStream = hold;
    const answer = talk(stand.port, GET);
    for (let at = 0; at < 2; at += 1) {
      await eventually(() => expect(held).toHaveLength(at + 1));
      // The clock advances in steps, so that no single try exceeds the time limit.
      await stand.clock.advance(MEMBER_TRIES_MS / 2);
      held[at]?.refuse({ code: 'dial-timeout', text: 'ETIMEDOUT' });
    }
    expect(await answer).toMatch(/^HTTP\/1\.1 502 .*x-tunnel-error: LOCAL_UNREACHABLE\r\n/s);
    expect(offeredTo()).toEqual([1, 1, 1, 0]);
  });

  it('goes to no unhealthy member', async () => {
    one.refuse();
    two.setHealthy(false);
    expect(await talk(stand.port, GET)).toMatch(/\r\n\r\nthree$/);
    three.setHealthy(false);
    expect(await talk(stand.port, GET)).toMatch(/x-tunnel-error: LOCAL_UNREACHABLE/);
  });

  it('adds no dispatch if it moves later on a connection while the first member lives', async () => {
    const answer = talk(stand.port, head('GET /1') + GET);
    // The idle stream of the first request ends when the second request comes, and then the client cannot dial.
    let isFirst = true;
    one.onStream = (stream) => {
      if (isFirst)
        takeStream(stream, { answer: 'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok' });
      else stream.refuse({ code: 'dial-refused', text: '' });
      isFirst = false;
    };
    expect((await answer).match(/HTTP\/1\.1 200/g)).toHaveLength(2);
    expect([dispatchesOf(), requestsOf()]).toEqual([
      [1, 0, 0],
      [1, 1, 0],
    ]);
    await eventually(() => expect(stand.ingress.connections).toBe(0));
    expect(stand.members.map(({ tunnel }) => tunnel.counters.openConnections)).toEqual([0, 0, 0]);
  });

  it('is sent with the Host and capture settings of the member that gets it', async () => {
    const pair = await Promise.all([startRecordingService('a'), startRecordingService('b')]);
    const own = await startGroupStand(
      pair.map(({ port }, at) => ({ localPort: port, http: { hostHeader: `host-${at}`, capture: at === 0 } })),
      { random: () => 0 },
    );
    cleanups.push(() => own.stop(), ...pair.map((service) => () => service.close()));
    own.members[0]?.refuse();
    await talk(own.port, GET);
    expect(pair[1]?.asked.map(({ host }) => host)).toEqual(['host-1']);
    expect(own.members.flatMap((member) => own.captured(member))).toEqual([]);
  });
});

describe('a request that was sent', () => {
  it('without an answer goes to the next member if repeating it is safe', async () => {
    one.onStream = (stream) => takeStream(stream, { onText: () => one.die() });
    expect(await talk(stand.port, GET)).toMatch(/\r\n\r\nthree$/);
    expect([requestsOf(), dispatchesOf()]).toEqual([
      [0, 0, 1],
      [0, 0, 1],
    ]);
    expect(stand.captured(one)).toEqual([]);
  });

  it('goes to the next member if the service hangs up without an answer: GET, HEAD, OPTIONS, TRACE', async () => {
    one.onStream = (stream) => {
      stream.accept();
      stream.read({ onData: () => true, onDrain: () => {}, onEnd: () => {}, onReset: () => {}, abandon: rethrow });
      stream.end();
    };
    for (const method of ['GET', 'HEAD', 'OPTIONS', 'TRACE']) {
      expect(await talk(stand.port, head(`${method} /`, 'Connection: close'))).toMatch(/^HTTP\/1\.1 200 /);
    }
    expect(askedOf()).toEqual([0, 4, 0]);
  });

  it.each([
    ['POST', 'Content-Length: 3', 'abc'],
    ['POST', 'Content-Length: 0', ''],
    ['DELETE', 'X: y', ''],
    ['GET', 'Content-Length: 3', 'abc'],
  ])('is not sent again if it may have had an effect: %s with %s', async (method, field, body) => {
    one.onStream = (stream) => takeStream(stream, { onText: (text) => text.endsWith(`\r\n\r\n${body}`) && one.die() });
    const answer = await talk(stand.port, head(`${method} /pay`, field, 'Connection: close') + body);
    expect(answer).toMatch(/^HTTP\/1\.1 502 .*x-tunnel-error: LOCAL_CLOSED\r\n/s);
    expect([offeredTo(), askedOf()]).toEqual([
      [1, 0, 0],
      [0, 0, 0],
    ]);
    expect(stand.captured(one)).toMatchObject([{ fault: 'LOCAL_CLOSED' }]);
    expect(requestsOf()).toEqual([1, 0, 0]);
  });

  it('is not sent again if its member died during sending, even if the request never arrived', async () => {
    const { upstream, pair } = one;
    const open = upstream.open.bind(upstream);
    let arrived = '';
    one.onStream = (stream) => takeStream(stream, { onText: (text) => (arrived = text) });
    upstream.open = (streamHead, answer) =>
      open(streamHead, {
        onOpened: (stream) => {
          answer.onOpened(stream);
          for (const carrier of pair.carriers) carrier.destroy('cut');
          one.die();
        },
        onRefused: (reason) => answer.onRefused(reason),
        abandon: rethrow,
      });
    const answer = await talk(stand.port, `${head('POST /pay', 'Content-Length: 3', 'Connection: close')}abc`);
    expect(answer).toMatch(/^HTTP\/1\.1 502 .*x-tunnel-error: LOCAL_CLOSED\r\n/s);
    expect([arrived, offeredTo(), askedOf()]).toEqual(['', [1, 0, 0], [0, 0, 0]]);
  });

  it('is not sent again once a byte of the response has arrived', async () => {
    for (const begun of ['H', 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n']) {
      one.onStream = (stream) => takeStream(stream, { answer: begun, ends: true });
      expect(await talk(stand.port, GET)).toMatch(/HTTP\/1\.1 502 .*x-tunnel-error: LOCAL_CLOSED\r\n/s);
    }
    expect(askedOf()).toEqual([0, 0, 0]);
  });

  it('is cut off when its member dies in the middle of the response', async () => {
    one.onStream = (stream) => takeStream(stream, { answer: 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf' });
    const socket = net.connect({ port: stand.port, host: '127.0.0.1' });
    let answer = '';
    const ended = new Promise<string>((resolve) => {
      socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''));
      socket.on('end', () => resolve('end'));
    });
    socket.on('data', (chunk: Buffer) => {
      answer += chunk.toString();
    });
    socket.write(head('GET /x'));
    await eventually(() => expect(answer).toContain('half'));
    one.die();
    await eventually(async () => {
      await stand.clock.advance(1000);
      expect(stand.ingress.connections).toBe(0);
    });
    expect(await ended).toBe('ECONNRESET');
    expect([answer.match(/HTTP/g)?.length, askedOf()]).toEqual([1, [0, 0, 0]]);
  });

  it('gets 504 after the time limit, and no other member is tried', async () => {
    one.onStream = (stream) => takeStream(stream);
    const answer = talk(stand.port, GET);
    await eventually(() => expect(one.offered).toBe(1));
    await eventually(async () => {
      await stand.clock.advance(61_000);
      expect(stand.ingress.totals.responses[5]).toBe(1);
    });
    expect(await answer).toMatch(/^HTTP\/1\.1 504 /);
    expect(offeredTo()).toEqual([1, 0, 0]);
  });

  it('on an idle stream that had ended is sent to the same member again', async () => {
    const streams: (() => void)[] = [];
    one.onStream = (stream) => {
      takeStream(stream, { answer: 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes' });
      streams.push(() => stream.end());
    };
    const socket = net.connect({ port: stand.port, host: '127.0.0.1' });
    cleanups.push(() => socket.destroy());
    let answer = '';
    socket.on('data', (chunk: Buffer) => {
      answer += chunk.toString();
    });
    socket.write(head('GET /1'));
    await eventually(() => expect(answer).toMatch(/yes$/));
    socket.write(head('GET /2'));
    // takeStream does not answer a second request on the same stream.
    streams[0]?.();
    await eventually(() => expect(answer.match(/yes/g)).toHaveLength(2));
    expect(offeredTo()).toEqual([2, 0, 0]);
  });
});

describe('an upgrade', () => {
  const UPGRADE = head('GET /ws', 'Connection: Upgrade', 'Upgrade: echo');
  const SWITCH = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n';

  it('goes to the next member before 101, together with early bytes', async () => {
    const echo = net.createServer((socket) => {
      socket.once('data', (first: Buffer) => {
        socket.write(`${SWITCH}hello `);
        const text = first.toString();
        socket.write(text.slice(text.indexOf('\r\n\r\n') + 4));
        socket.pipe(socket);
      });
      socket.on('error', () => {});
    });
    await new Promise<void>((resolve) => echo.listen(0, '127.0.0.1', resolve));
    cleanups.push(() => echo.close());
    const { port } = echo.address() as net.AddressInfo;
    one.refuse();
    two.onStream = (stream) => takeStream(stream, { onText: () => two.die() });
    three.onStream = (stream) => dialLocal(stream, port);
    expect(await talk(stand.port, `${UPGRADE}early`, 'hello early')).toMatch(/^HTTP\/1\.1 101 /);
    expect([requestsOf(), dispatchesOf()]).toEqual([
      [0, 0, 1],
      [0, 0, 1],
    ]);
    expect(three.tunnel.counters.bytes).toBeGreaterThan(UPGRADE.length);
  });

  it('is cut off when its member dies after 101', async () => {
    one.onStream = (stream) => takeStream(stream, { answer: SWITCH });
    const socket = net.connect({ port: stand.port, host: '127.0.0.1' });
    const ended = new Promise<string>((resolve) => {
      socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''));
      socket.on('end', () => resolve('end'));
    });
    socket.write(UPGRADE);
    await new Promise((resolve) => socket.once('data', resolve));
    one.die();
    expect(await ended).toBe('ECONNRESET');
    expect(offeredTo()).toEqual([1, 0, 0]);
  });
});

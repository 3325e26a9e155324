// Random requests to members with every kind of failure, and the guarantees for any outcome.
import * as http from 'node:http';
import type { ClientHttp2Session } from 'node:http2';
import type { MuxStream } from '@tunnel/mux';
import { deterministicBytes, eventually, hashOf, randomCases, seededRandom } from '@tunnel/testkit';
import { afterEach, expect, it } from 'vitest';
import { type GroupStand, type StandMember, startGroupStand } from './group.fixture.ts';
import { dialLocal } from './http.fixture.ts';
import { ask, startHttpsPort, visitHttp2 } from './https.fixture.ts';
import { type RecordingService, startRecordingService, takeStream } from './service.fixture.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const MEMBERS = 4;
const REQUESTS = randomCases(150);
const AT_ONCE = 8;

interface Sent {
  readonly path: string;
  readonly method: 'GET' | 'POST';
  readonly body: Buffer | null;
  /** 'cut' if only half of a response arrived. */
  outcome: string;
}

/** Records the requests that the edge wrote to streams, and the requests that services and failing clients received. */
class Witness {
  readonly deliveries = new Map<string, number>();
  /** Paths of requests that got some bytes of a response and no more. */
  readonly begun = new Set<string>();
  /** Members to which each request was sent. Data under way when the session of a member ended may have arrived or not. */
  readonly sentTo = new Map<string, StandMember[]>();
  readonly dead = new Set<StandMember>();

  delivered(path: string): void {
    this.deliveries.set(path, (this.deliveries.get(path) ?? 0) + 1);
  }

  /** Records request heads written to streams of the member. */
  watch(member: StandMember): void {
    const { upstream } = member;
    const open = upstream.open.bind(upstream);
    upstream.open = (head, answer) =>
      open(head, {
        onOpened: (stream) => {
          this.#watchWrites(stream as MuxStream, member);
          answer.onOpened(stream);
        },
        onRefused: (reason) => answer.onRefused(reason),
        abandon: (error, where) => answer.abandon(error, where),
      });
  }

  #watchWrites(stream: MuxStream, member: StandMember): void {
    const write = stream.write.bind(stream);
    stream.write = (bytes, start, end, borrowed) => {
      const path = /^(?:GET|POST) (\/\d+) HTTP\/1\.1\r\n/.exec(bytes.toString('latin1', start, end))?.[1];
      if (path !== undefined) this.sentTo.set(path, [...(this.sentTo.get(path) ?? []), member]);
      return write(bytes, start, end, borrowed);
    };
  }
}

/** Client behavior that ends a stream badly: before the dial is done, before a response, or within a response. */
const badEnd = (stream: MuxStream, chance: number, witness: Witness, member: StandMember): void => {
  if (chance < 0.3) return stream.refuse({ code: 'dial-refused', text: 'ECONNREFUSED' });
  if (chance < 0.4) return member.die();
  const isBegun = chance > 0.7;
  const answer =
    chance > 0.85 ? 'HTTP/1.1 103 Early Hints\r\n\r\n' : 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf';
  let isSeen = false;
  const onText = (text: string): void => {
    if (isSeen || !text.includes('\r\n\r\n')) return;
    isSeen = true;
    const path = text.split(' ')[1] ?? '';
    witness.delivered(path);
    if (isBegun) witness.begun.add(path);
    else if (chance > 0.65) member.die();
    else stream.end();
  };
  takeStream(stream, { answer: isBegun ? answer : '', ends: isBegun, onText });
};

const sendHttp1 = (port: number, agent: http.Agent, { path, method, body }: Sent): Promise<string> =>
  new Promise((resolve) => {
    const headers = { host: 'web.localhost', ...(body === null ? {} : { 'content-length': body.length }) };
    const request = http.request({ port, host: '127.0.0.1', agent, method, path, headers }, (response) => {
      response.resume();
      response.on('end', () => resolve(String(response.statusCode)));
      response.on('error', () => resolve('cut'));
    });
    request.on('error', () => resolve('cut'));
    if (body === null) request.end();
    else request.end(body);
  });

const sendHttp2 = (session: ClientHttp2Session, { path, method, body }: Sent): Promise<string> =>
  ask(session, { ':path': path, ':method': method }, body ?? undefined).then(
    ({ status }) => String(status),
    () => 'cut',
  );

const startServices = async (witness: Witness): Promise<RecordingService> => {
  const service = await startRecordingService('good', ({ url = '' }, response) => {
    witness.delivered(url);
    response.end('good');
  });
  cleanups.push(() => service.close());
  return service;
};

/** Starts a group in which members come and go during the test. The first member never fails. */
const startStand = async (random: () => number, witness: Witness, localPort: number): Promise<GroupStand> => {
  const sound = { localPort };
  const stand = await startGroupStand([sound], { domain: 'localhost', random });
  cleanups.push(() => stand.stop());
  for (const member of stand.members) witness.watch(member);
  const joinUnsound = async (): Promise<void> => {
    const member = await stand.join(sound);
    const { die } = member;
    witness.watch(member);
    member.onStream = (stream) => {
      if (random() < 0.4) dialLocal(stream, localPort);
      else badEnd(stream, random(), witness, member);
    };
    member.die = () => {
      if (witness.dead.has(member)) return;
      witness.dead.add(member);
      die();
      void joinUnsound();
    };
  };
  for (let i = 1; i < MEMBERS; i += 1) await joinUnsound();
  return stand;
};

const checkEach = (sent: readonly Sent[], witness: Witness, service: RecordingService): void => {
  for (const { path, method, body, outcome } of sent) {
    const deliveries = witness.deliveries.get(path) ?? 0;
    const answers = service.asked.filter(({ url }) => url === path);
    const sentTo = witness.sentTo.get(path) ?? [];
    const note = `${method} ${path}: ${outcome}, sent ${sentTo.length}, delivered ${deliveries}, answered ${answers.length}`;
    // A request is sent twice only if repeating it is safe.
    if (method === 'POST') expect(sentTo.length, note).toBe(1);
    expect(deliveries, note).toBeLessThanOrEqual(sentTo.length);
    // A body given to a service arrived whole, even if the response was lost with its member.
    for (const { bodyHash } of answers) expect(bodyHash, note).toBe(hashOf(body ?? Buffer.alloc(0)));
    if (outcome === '200') expect(answers.length, note).toBeGreaterThanOrEqual(1);
    // A request is lost only if it could not be sent again.
    else if (method === 'GET') expect(witness.begun.has(path), note).toBe(true);
    else if (!sentTo.every((member) => witness.dead.has(member))) expect(deliveries, note).toBe(1);
  }
};

it.each([1, 2, 3, 4, 5])(
  'with failing members, requests are lost or sent twice only where the rules allow it (seed %d)',
  async (seed) => {
    const random = seededRandom(seed);
    const witness = new Witness();
    const service = await startServices(witness);
    const stand = await startStand(random, witness, service.port);
    const https = await startHttpsPort(stand.ingress);
    // The clock moves on, because a response that is cut off ends a moment later.
    const moments = setInterval(() => void stand.clock.advance(100), 20);
    cleanups.push(() => clearInterval(moments));
    const agent = new http.Agent({ keepAlive: true, maxSockets: AT_ONCE });
    const session = visitHttp2({ port: https });
    cleanups.push(
      () => https.stop(),
      () => agent.destroy(),
      () => session.destroy(),
    );
    const sent: Sent[] = [];
    const sendOne = async (): Promise<void> => {
      const body = random() < 0.5 ? deterministicBytes(1 + Math.floor(random() * 200_000), sent.length) : null;
      const one: Sent = { path: `/${sent.length}`, method: body === null ? 'GET' : 'POST', body, outcome: '' };
      sent.push(one);
      one.outcome = await (random() < 0.5 ? sendHttp1(stand.port, agent, one) : sendHttp2(session, one));
    };
    const worker = async (): Promise<void> => {
      while (sent.length < REQUESTS) await sendOne();
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    checkEach(sent, witness, service);
    const counted = stand.members.reduce((sum, { tunnel }) => sum + tunnel.counters.requests, 0);
    expect([counted, stand.ingress.totals.requests]).toEqual([sent.length, sent.length]);
    const captured = stand.members.flatMap((member) => stand.captured(member).map(({ requestText }) => requestText));
    expect(captured).toHaveLength(sent.length);
    expect(new Set(captured.map((text) => text.split(' ')[1]))).toEqual(new Set(sent.map(({ path }) => path)));
    agent.destroy();
    session.destroy();
    await eventually(() => expect(stand.ingress.connections).toBe(0));
    for (const { tunnel } of stand.members) expect(tunnel.counters.openConnections).toBe(0);
  },
);

// Failover to the next member of a group, for HTTP/2 visitors and for services that speak HTTP/2.
import { constants } from 'node:http2';
import { deterministicBytes, eventually, hashOf } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { type GroupStand, type MemberOptions, type StandMember, startGroupStand } from './group.fixture.ts';
import { type IngressOptions, talk } from './http.fixture.ts';
import { ask, startHttpsPort, visitHttp2 } from './https.fixture.ts';
import { type RecordingService, startRecordingH2c, startRecordingService, takeStream } from './service.fixture.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const H2C = { localProtocol: 'h2c' } as const;

interface Stage {
  readonly stand: GroupStand;
  readonly visit: (authority?: string) => ReturnType<typeof visitHttp2>;
}

/** Starts a group. The members are chosen in order. */
const startStage = async (
  members: readonly (MemberOptions & { readonly service?: RecordingService })[],
  options: Partial<IngressOptions> = {},
): Promise<Stage> => {
  for (const { service } of members) cleanups.push(() => service?.close());
  const random = (): number => 0;
  const given = members.map(({ service, ...rest }, at) => ({
    ...(service === undefined ? {} : { localPort: service.port }),
    accountId: `of ${at + 1}`,
    ...rest,
  }));
  const stand = await startGroupStand(given, { domain: 'localhost', random, ...options });
  const port = await startHttpsPort(stand.ingress);
  cleanups.push(
    () => stand.stop(),
    () => port.stop(),
  );
  const visit: Stage['visit'] = (authority) => {
    const session = visitHttp2({ port }, authority);
    cleanups.push(() => session.destroy());
    return session;
  };
  return { stand, visit };
};

const dispatchesOf = (stand: GroupStand): number[] =>
  stand.members.map(({ tunnel }) => stand.group.tally(tunnel.owner).totalDispatches);
const requestsOf = (stand: GroupStand): number[] => stand.members.map(({ tunnel }) => tunnel.counters.requests);
const openOf = (stand: GroupStand): number[] => stand.members.map(({ tunnel }) => tunnel.counters.openConnections);

describe('an HTTP/2 visitor', () => {
  it('is served by the next member, with its body, when the first member cannot dial', async () => {
    const services = await Promise.all(['one', 'two'].map((name) => startRecordingService(name)));
    const { stand, visit } = await startStage(services.map((service) => ({ service })));
    stand.members[0]?.refuse();
    const session = visit();
    expect(await ask(session, { ':path': '/' })).toMatchObject({ status: 200, body: 'two' });
    const sent = deterministicBytes(1_000_003, 6);
    for (const headers of [{}, { 'content-length': sent.length }]) {
      // Every upload uses a new connection, because an existing connection stays with its member.
      expect((await ask(visit(), { ':method': 'POST', ...headers }, sent)).body).toBe('two');
    }
    expect(services[1]?.asked.map(({ bodyHash }) => bodyHash).slice(1)).toEqual([hashOf(sent), hashOf(sent)]);
    expect([services[0]?.asked, requestsOf(stand), dispatchesOf(stand)]).toEqual([[], [0, 3], [0, 3]]);
    expect(stand.captured(stand.members[0] as StandMember)).toEqual([]);
    expect(stand.captured(stand.members[1] as StandMember)).toHaveLength(3);
  });

  it('counts as one connection, even if all 20 requests move to the next member at once', async () => {
    const services = await Promise.all(['one', 'two'].map((name) => startRecordingService(name)));
    const { stand, visit } = await startStage(services.map((service) => ({ service })));
    const [one] = stand.members as [StandMember];
    one.onStream = (stream) => takeStream(stream);
    const session = visit();
    const answers = Promise.all(Array.from({ length: 20 }, () => ask(session, { ':path': '/' })));
    await eventually(() => expect(one.offered).toBe(20));
    one.die();
    expect(new Set((await answers).map(({ body }) => body))).toEqual(new Set(['two']));
    expect([dispatchesOf(stand), requestsOf(stand), openOf(stand)]).toEqual([
      [0, 1],
      [0, 20],
      [0, 1],
    ]);
    expect(stand.ingress.totals.requests).toBe(20);
    session.destroy();
    await eventually(() => expect(openOf(stand)).toEqual([0, 0]));
  });

  it('is dispatched to a group once, however many names of the group it requests', async () => {
    const service = await startRecordingService('one');
    const stage: { stand?: GroupStand } = {};
    const tunnels: IngressOptions['tunnels'] = { at: () => stage.stand?.group };
    const { stand, visit } = await startStage([{ service }], { tunnels });
    stage.stand = stand;
    const session = visit();
    for (const authority of ['a.localhost', 'b.localhost', 'a.localhost']) {
      expect((await ask(session, { ':path': '/', ':authority': authority })).body).toBe('one');
    }
    expect([dispatchesOf(stand), openOf(stand)]).toEqual([[1], [1]]);
  });

  it('gets 502 for a POST that was sent and a reset for half a response; no other member is tried', async () => {
    const service = await startRecordingService('two');
    const { stand, visit } = await startStage([{}, { service }]);
    const [one] = stand.members as [StandMember];
    one.onStream = (stream) => takeStream(stream, { onText: (text) => /\r\n\r\n.*pay/s.test(text) && stream.end() });
    const answer = await ask(visit(), { ':method': 'POST' }, 'pay');
    expect([answer.status, answer.headers['x-tunnel-error']]).toEqual([502, 'LOCAL_CLOSED']);
    one.onStream = (stream) =>
      takeStream(stream, { answer: 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf', ends: true });
    await expect(ask(visit(), { ':path': '/' })).rejects.toThrow(`reset with ${constants.NGHTTP2_INTERNAL_ERROR}`);
    expect(service.asked).toEqual([]);
  });

  it('gets 502 with GROUP_UNHEALTHY when no member is healthy', async () => {
    const { stand, visit } = await startStage([{}]);
    stand.members[0]?.setHealthy(false);
    const answer = await ask(visit(), { ':path': '/', accept: 'application/json' });
    expect([answer.status, answer.headers['x-tunnel-error']]).toEqual([502, 'GROUP_UNHEALTHY']);
    expect(JSON.parse(answer.body)).toMatchObject({ code: 'GROUP_UNHEALTHY' });
  });
});

describe('an HTTP/2 service', () => {
  it('that cannot be reached or does not speak HTTP/2 leaves the request to the next member', async () => {
    const plain = await startRecordingService('plain');
    const service = await startRecordingH2c('three');
    const { stand, visit } = await startStage([{ http: H2C }, { service: plain, http: H2C }, { service, http: H2C }]);
    const sent = deterministicBytes(300_001, 7);
    const answer = await ask(visit(), { ':method': 'POST' }, sent, { 'x-check': '+trailers' });
    expect(answer).toMatchObject({ status: 200, body: 'three+trailers' });
    expect(service.asked[0]?.bodyHash).toBe(hashOf(sent));
    expect([requestsOf(stand), dispatchesOf(stand)]).toEqual([
      [0, 0, 1],
      [0, 0, 1],
    ]);
  });

  it('gets the body and trailers of an HTTP/1.1 visitor after another member refused the request', async () => {
    const service = await startRecordingH2c('two');
    const { stand } = await startStage([{ http: H2C }, { service, http: H2C }]);
    const refusals: (() => void)[] = [];
    const [one] = stand.members as [StandMember];
    one.onStream = (stream) => refusals.push(() => stream.refuse({ code: 'dial-refused', text: '' }));
    const request =
      'POST / HTTP/1.1\r\nHost: web.localhost\r\nTransfer-Encoding: chunked\r\nTE: trailers\r\nConnection: close, TE\r\n\r\n' +
      '3\r\nabc\r\n3\r\ndef\r\n0\r\nx-check:  too\r\n\r\n';
    const answer = talk(stand.port, request);
    await eventually(() => expect(refusals).toHaveLength(1));
    refusals[0]?.();
    expect(await answer).toContain('twotoo');
    expect(service.asked[0]?.bodyHash).toBe(hashOf(Buffer.from('abcdef')));
  });

  it('that refuses a stream gets the request once more; then the next member gets it, even a DELETE', async () => {
    let calls = 0;
    const refusing = await startRecordingH2c('one', (stream) => {
      calls += 1;
      stream.close(constants.NGHTTP2_REFUSED_STREAM);
      return true;
    });
    const service = await startRecordingH2c('two');
    const { visit } = await startStage([
      { service: refusing, http: H2C },
      { service, http: H2C },
    ]);
    expect((await ask(visit(), { ':path': '/' })).body).toBe('two');
    expect(calls).toBe(2);
    // DELETE is not safe to repeat, but a refused stream has had no effect.
    expect((await ask(visit(), { ':method': 'DELETE', ':path': '/' })).body).toBe('two');
    expect(calls).toBe(4);
    expect(service.asked.map(({ method }) => method)).toEqual(['GET', 'DELETE']);
  });

  it('that dies with its member is replaced for a GET, but not for a POST that was sent', async () => {
    const members: StandMember[] = [];
    const dying = await startRecordingH2c('one', () => {
      members[0]?.die();
      return true;
    });
    const service = await startRecordingH2c('two');
    const start = () =>
      startStage([
        { service: dying, http: H2C },
        { service, http: H2C },
      ]);
    const first = await start();
    members.splice(0, 1, ...first.stand.members);
    expect((await ask(first.visit(), { ':path': '/' })).body).toBe('two');
    const second = await start();
    members.splice(0, members.length, ...second.stand.members);
    const answer = await ask(second.visit(), { ':method': 'POST', ':path': '/' }, 'pay');
    expect([answer.status, answer.headers['x-tunnel-error']]).toEqual([502, 'LOCAL_CLOSED']);
    expect(service.asked.map(({ method }) => method)).toEqual(['GET']);
  });

  it('that has sent 103 is not replaced by another member', async () => {
    const hinting = await startRecordingH2c('one', (stream) => {
      stream.additionalHeaders({ ':status': 103, link: '</a>' });
      setTimeout(() => stream.close(constants.NGHTTP2_REFUSED_STREAM), 20);
      return true;
    });
    const service = await startRecordingH2c('two');
    const { visit } = await startStage([
      { service: hinting, http: H2C },
      { service, http: H2C },
    ]);
    expect(await ask(visit(), { ':path': '/' })).toMatchObject({ status: 502, interim: [103] });
    expect(service.asked).toEqual([]);
  });

  it('replaces an HTTP/1.1 service if the request has no body; otherwise an HTTP/1.1 member does', async () => {
    const h2c = await startRecordingH2c('two');
    const service = await startRecordingService('three');
    const { visit } = await startStage([{}, { service: h2c, http: H2C }, { service }]);
    expect((await ask(visit(), { ':path': '/' })).body).toBe('two');
    expect((await ask(visit(), { ':method': 'POST', ':path': '/' }, 'x')).body).toBe('three');
  });
});

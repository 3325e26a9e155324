import { writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import { join } from 'node:path';
import { Fault } from '@tunnel/errors';
import {
  eventually,
  FakeClock,
  startTcpServer,
  type TcpServer,
  type TemporaryDirectory,
  temporaryDirectory,
  testCertificate,
} from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { connect } from '../client.ts';
import type { ConnectOptions } from '../options.ts';
import { ScriptedEdge } from '../scripted-edge.fixture.ts';
import type { StatusEvent } from '../status.ts';

let directory: TemporaryDirectory;
const cleanUps: (() => Promise<unknown>)[] = [];

beforeEach(async () => {
  directory = await temporaryDirectory();
});
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
  await directory.close();
});

const startEdge = async (tls?: ConstructorParameters<typeof ScriptedEdge>[0]): Promise<ScriptedEdge> => {
  const edge = await new ScriptedEdge(tls).listen();
  cleanUps.push(() => edge.close());
  return edge;
};

const dial = async (options: Partial<ConnectOptions> & { server: string }): Promise<void> => {
  const client = await connect({ token: 'tnl_secret', random: () => 0.5, ...options });
  cleanUps.push(() => client.close());
};

const failure = async (options: Partial<ConnectOptions> & { server: string }): Promise<Fault> => {
  const error: unknown = await dial(options).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof Fault) return error;
  throw new Error(`expected a fault, got ${String(error)}`);
};

/** Moves a fake clock until the work under way on real sockets has come to its end. */
const runOut = async (clock: FakeClock, work: Promise<Fault>): Promise<Fault> => {
  let result: Fault | undefined;
  void work.then((fault) => {
    result = fault;
  });
  return eventually(
    async () => {
      await clock.advance(250);
      expect(result).toBeDefined();
      return result as Fault;
    },
    { intervalMs: 2 },
  );
};

describe('TLS', () => {
  it('is named as the setting to change when the edge speaks it and we do not', async () => {
    const edge = await startEdge(testCertificate());
    expect(await failure({ server: edge.address })).toMatchObject({ code: 'CLIENT_SERVER_SPEAKS_TLS' });
    expect(edge.sessions).toEqual([]);
  });

  it('is named as the setting to change when the edge does not speak it', async () => {
    const edge = await startEdge();
    expect(await failure({ server: edge.address, tls: true })).toMatchObject({ code: 'CLIENT_SERVER_SPEAKS_PLAIN' });
  });

  it('refuses a certificate that nobody vouches for', async () => {
    const edge = await startEdge(testCertificate());
    const fault = await failure({ server: edge.address, tls: true });
    expect(fault.code).toBe('CLIENT_CERTIFICATE');
    expect(edge.sessions).toEqual([]);
  });

  it('accepts it with the authority given, or when told not to look', async () => {
    const edge = await startEdge(testCertificate());
    const caFile = join(directory.path, 'ca.pem');
    writeFileSync(caFile, testCertificate().cert);
    await dial({ server: edge.address, tls: true, caFile });
    await dial({ server: `localhost:${edge.port}`, tls: true, caFile });
    await dial({ server: edge.address, tls: true, insecure: true });
    // The carriers are TLS too.
    await eventually(() => expect(edge.sessions.map(({ mux }) => mux.liveCarriers)).toEqual([2, 2, 2]));
  });
});

describe('TLS 1.2', () => {
  const OLD = { ...testCertificate(), maxVersion: 'TLSv1.2' } as const;

  it('is enough for carriers where somebody else answers for the edge', async () => {
    const front = await startEdge({ ...OLD, ALPNProtocols: ['http/1.1'] });
    await dial({ server: front.address, tls: true, insecure: true });
    await eventually(() => expect(front.session.mux.liveCarriers).toBe(2));
  });

  it('is not where an edge does', async () => {
    const edge = await startEdge({ ...OLD, ALPNProtocols: ['tunnel/1', 'http/1.1'] });
    const clock = new FakeClock();
    const fault = await runOut(clock, failure({ server: edge.address, tls: true, insecure: true, clock }));
    expect(fault.message).toContain('carriers need TLS 1.3, but the connection uses TLSv1.2');
  });
});

describe('a port that is no edge', () => {
  const startBanner = async (): Promise<TcpServer> => {
    const server = await startTcpServer((socket) => socket.write('SSH-2.0-OpenSSH_9.2\r\n'));
    cleanUps.push(() => server.close());
    return server;
  };

  const startHttp = async (status: number): Promise<string> => {
    const server: Server = createHttpServer((_request, response) => response.writeHead(status).end());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    cleanUps.push(() => new Promise((resolve) => server.close(resolve)));
    return `127.0.0.1:${(server.address() as AddressInfo).port}`;
  };

  it.each([false, true])('is called so when it speaks something else (tls: %s)', async (tls) => {
    const { port } = await startBanner();
    expect(await failure({ server: `127.0.0.1:${port}`, tls })).toMatchObject({ code: 'CLIENT_NOT_AN_EDGE' });
  });

  it('is called so when it is some web server', async () => {
    const fault = await failure({ server: await startHttp(404) });
    expect(fault.message).toMatch(/is not a tunnel edge: the response was HTTP 404/);
  });

  it('is tried again when a proxy says that its edge is away', async () => {
    const clock = new FakeClock();
    const fault = await runOut(clock, failure({ server: await startHttp(503), clock }));
    expect(fault).toMatchObject({ code: 'CLIENT_SERVER_UNREACHABLE' });
    expect(fault.message).toContain('the response was HTTP 503');
  });
});

describe('a server that does not answer', () => {
  it('is given 30 s when nothing listens there', async () => {
    const closed = await startTcpServer(() => {});
    await closed.close();
    const clock = new FakeClock();
    const events: StatusEvent[] = [];
    const server = `127.0.0.1:${closed.port}`;
    const fault = await runOut(clock, failure({ server, clock, onStatus: (event) => events.push(event) }));
    expect(fault.message).toBe(`cannot reach ${server}: connection refused`);
    expect(clock.monotonic()).toBeGreaterThanOrEqual(30_000);
    expect(events.filter((event) => event.type === 'reconnecting').length).toBeGreaterThan(3);
  });

  it('is given up when it accepts and says nothing', async () => {
    const silent = await startTcpServer(() => {});
    cleanUps.push(() => silent.close());
    const clock = new FakeClock();
    const fault = await runOut(clock, failure({ server: `127.0.0.1:${silent.port}`, clock }));
    expect(fault.message).toContain('no response within 10 s');
  });

  it('is noticed within 25 s when it goes silent after a good start', async () => {
    const edge = await startEdge();
    edge.script.Ping = () => true;
    const clock = new FakeClock();
    const events: StatusEvent[] = [];
    await dial({ server: edge.address, clock, onStatus: (event) => events.push(event) });
    // A carrier that were still being dialled would be given up on the way, and tokens for another one be heard.
    await eventually(() => expect(edge.session.mux.liveCarriers).toBe(2));
    await clock.advance(24_000);
    expect(events.some((event) => event.type === 'reconnecting')).toBe(false);
    await clock.advance(1000);
    expect(events).toContainEqual(expect.objectContaining({ reason: 'no data received for 25 s' }));
  });
});

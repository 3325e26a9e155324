import { writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import { join } from 'node:path';
import { Fault } from '@tunnel/errors';
import {
  eventually,
  FakeClock,
  renewedCertificate,
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

const DAY_MS = 86_400_000;

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

/** Advances the fake clock until work on real sockets has failed, and returns the fault. */
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

describe('TLS to the edge', () => {
  it('when missing on the client, the error says that the server speaks TLS', async () => {
    const edge = await startEdge(testCertificate());
    expect(await failure({ server: edge.address })).toMatchObject({ code: 'CLIENT_SERVER_SPEAKS_TLS' });
    expect(edge.sessions).toEqual([]);
  });

  it('when requested from a plain edge, the error says that the server does not speak TLS', async () => {
    const edge = await startEdge();
    expect(await failure({ server: edge.address, tls: true })).toMatchObject({ code: 'CLIENT_SERVER_SPEAKS_PLAIN' });
  });

  it('is refused when the certificate is not trusted', async () => {
    const edge = await startEdge(testCertificate());
    const fault = await failure({ server: edge.address, tls: true });
    expect(fault.code).toBe('CLIENT_CERTIFICATE');
    expect(edge.sessions).toEqual([]);
  });

  it('is accepted with the matching CA file, or with certificate checks turned off', async () => {
    const edge = await startEdge(testCertificate());
    const caFile = join(directory.path, 'ca.pem');
    writeFileSync(caFile, testCertificate().cert);
    await dial({ server: edge.address, tls: true, caFile });
    await dial({ server: `localhost:${edge.port}`, tls: true, caFile });
    await dial({ server: edge.address, tls: true, insecure: true });
    // The carriers use TLS like the control connection.
    await eventually(() => expect(edge.sessions.map(({ mux }) => mux.liveCarriers)).toEqual([2, 2, 2]));
  });
});

describe('the TLS session of a client', () => {
  const FULL = [false, true, true];

  /** Connects, and returns a function that starts the given attempt to reconnect. */
  const connected = async (edge: ScriptedEdge) => {
    const caFile = join(directory.path, 'ca.pem');
    writeFileSync(caFile, testCertificate().cert);
    const clock = new FakeClock();
    const options = { token: 'tnl_secret', random: () => 0.5, tls: true, caFile, clock };
    const client = await connect({ ...options, server: edge.address });
    cleanUps.push(() => client.close());
    const events: StatusEvent[] = [];
    client.onStatus((event) => events.push(event));
    await eventually(() => expect(edge.session.mux.liveCarriers).toBe(2));
    expect(edge.resumptions).toEqual(FULL);
    const reconnect = async (attempt = 1): Promise<void> => {
      const delayMs = await eventually(() => {
        const last = events.at(-1);
        if (last?.type !== 'reconnecting' || last.attempt !== attempt) throw new Error(`no attempt ${attempt} yet`);
        return last.delayMs;
      });
      await clock.advance(delayMs);
    };
    return { clock, events, reconnect };
  };

  /** Starts another server on the port of an edge. */
  const replace = async (edge: ScriptedEdge, tls: { cert: string; key: string }): Promise<ScriptedEdge> => {
    const { port } = edge;
    await edge.close();
    const next = await new ScriptedEdge(tls).listen(port);
    cleanUps.push(() => next.close());
    return next;
  };

  it('is resumed by carriers and reconnects', async () => {
    const edge = await startEdge(testCertificate());
    const { reconnect } = await connected(edge);
    edge.session.cut();
    await reconnect();
    await eventually(() => expect(edge.resumptions).toEqual([...FULL, true, true, true]));
  });

  it('is kept while the server cannot be reached', async () => {
    const tls = { ...testCertificate(), ticketKeys: Buffer.alloc(48, 'ticket key') };
    const edge = await startEdge(tls);
    const { port } = edge;
    const { reconnect } = await connected(edge);
    await edge.close();
    await reconnect();
    const next = await new ScriptedEdge(tls).listen(port);
    cleanUps.push(() => next.close());
    await reconnect(2);
    await eventually(() => expect(next.resumptions).toEqual([true, true, true]));
  });

  it('is replaced by a full handshake with a server that has other ticket keys', async () => {
    const edge = await startEdge(testCertificate());
    const { reconnect } = await connected(edge);
    const next = await replace(edge, testCertificate());
    await reconnect();
    await eventually(() => expect(next.resumptions).toEqual(FULL));
  });

  it('is replaced a day after the last check of the certificate, even if it was resumed meanwhile', async () => {
    const edge = await startEdge(testCertificate());
    const { clock, reconnect } = await connected(edge);
    const checkedMs = clock.now();
    const RESUMED = [true, true, true];
    const handshakes = [...FULL];
    for (const [attempt, ageMs, expected] of [
      [1, DAY_MS - 60_000, RESUMED],
      [2, DAY_MS, FULL],
      [3, DAY_MS + 60_000, RESUMED],
    ] as const) {
      clock.setWallClock(checkedMs + ageMs);
      edge.session.cut();
      await reconnect(attempt);
      handshakes.push(...expected);
      await eventually(() => expect(edge.resumptions).toEqual(handshakes));
      await eventually(() => expect(edge.session.mux.liveCarriers).toBe(2));
    }
  });

  it('is forgotten if the server closes resumed connections before its first response', async () => {
    const edge = await startEdge(testCertificate());
    const { clock } = await connected(edge);
    edge.admitResumed = false;
    edge.session.cut();
    await eventually(async () => {
      await clock.advance(250);
      expect(edge.sessions.length).toBeGreaterThan(1);
      expect(edge.session.mux.liveCarriers).toBe(2);
    });
  });

  it('does not skip the check of the certificate of another server', async () => {
    const edge = await startEdge(testCertificate());
    const { events, reconnect } = await connected(edge);
    const impostor = await replace(edge, renewedCertificate());
    await reconnect();
    await eventually(() => expect(JSON.stringify(events[1])).toContain('is not trusted'));
    expect(impostor.sessions).toEqual([]);
  });
});

describe('TLS 1.2 on carriers', () => {
  const OLD = { ...testCertificate(), maxVersion: 'TLSv1.2' } as const;

  it('is accepted when another TLS server stands in front of the edge', async () => {
    const front = await startEdge({ ...OLD, ALPNProtocols: ['http/1.1'] });
    await dial({ server: front.address, tls: true, insecure: true });
    await eventually(() => expect(front.session.mux.liveCarriers).toBe(2));
  });

  it('is rejected when the edge itself speaks TLS', async () => {
    const edge = await startEdge({ ...OLD, ALPNProtocols: ['tunnel/1', 'http/1.1'] });
    const clock = new FakeClock();
    const fault = await runOut(clock, failure({ server: edge.address, tls: true, insecure: true, clock }));
    expect(fault.message).toContain('carriers need TLS 1.3, but the connection uses TLSv1.2');
  });
});

describe('a port that is not an edge', () => {
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

  it.each([false, true])('is reported as CLIENT_NOT_AN_EDGE when it speaks another protocol (tls: %s)', async (tls) => {
    const { port } = await startBanner();
    expect(await failure({ server: `127.0.0.1:${port}`, tls })).toMatchObject({ code: 'CLIENT_NOT_AN_EDGE' });
  });

  it('is reported with its HTTP status when it is a web server', async () => {
    const fault = await failure({ server: await startHttp(404) });
    expect(fault.message).toMatch(/is not a tunnel edge: the response was HTTP 404/);
  });

  it('is retried when a reverse proxy responds that the edge is away', async () => {
    const clock = new FakeClock();
    const fault = await runOut(clock, failure({ server: await startHttp(503), clock }));
    expect(fault).toMatchObject({ code: 'CLIENT_SERVER_UNREACHABLE' });
    expect(fault.message).toContain('the response was HTTP 503');
  });
});

describe('a server that does not respond', () => {
  it('is retried for 30 s when its port is closed', async () => {
    // A port that was free a moment ago could be opened by another test meanwhile. No test opens a port below 1024.
    const server = '127.0.0.1:9';
    const clock = new FakeClock();
    const events: StatusEvent[] = [];
    const fault = await runOut(clock, failure({ server, clock, onStatus: (event) => events.push(event) }));
    expect(fault.message).toBe(`cannot reach ${server}: connection refused`);
    expect(clock.monotonic()).toBeGreaterThanOrEqual(30_000);
    expect(events.filter((event) => event.type === 'reconnecting').length).toBeGreaterThan(3);
  });

  it('fails the dial after 10 s when it accepts the connection and stays silent', async () => {
    const silent = await startTcpServer(() => {});
    cleanUps.push(() => silent.close());
    const clock = new FakeClock();
    const fault = await runOut(clock, failure({ server: `127.0.0.1:${silent.port}`, clock }));
    expect(fault.message).toContain('no response within 10 s');
  });

  it('is noticed after 25 s of silence on an established connection', async () => {
    const edge = await startEdge();
    edge.script.Ping = () => true;
    const clock = new FakeClock();
    const events: StatusEvent[] = [];
    await dial({ server: edge.address, clock, onStatus: (event) => events.push(event) });
    // Waits for both carriers: a pending dial would time out first, and a token request would count as data from the edge.
    await eventually(() => expect(edge.session.mux.liveCarriers).toBe(2));
    await clock.advance(24_000);
    expect(events.some((event) => event.type === 'reconnecting')).toBe(false);
    await clock.advance(1000);
    expect(events).toContainEqual(expect.objectContaining({ reason: 'no data received for 25 s' }));
  });
});

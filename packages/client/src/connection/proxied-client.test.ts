import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { Fault } from '@tunnel/errors';
import {
  type ConnectProxyOptions,
  eventually,
  FakeClock,
  renewedCertificate,
  startConnectProxy,
  startSocksProxy,
  type TemporaryDirectory,
  type TestProxy,
  temporaryDirectory,
} from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Client, connect } from '../client.ts';
import type { ConnectOptions } from '../options.ts';
import { ScriptedEdge } from '../scripted-edge.fixture.ts';
import type { StatusEvent } from '../status.ts';

let directory: TemporaryDirectory;
let caFile: string;
let events: StatusEvent[];
const cleanUps: (() => Promise<unknown>)[] = [];

beforeEach(async () => {
  directory = await temporaryDirectory();
  // The certificate is for *.edge.test, and only the proxy can resolve names below edge.test.
  caFile = join(directory.path, 'ca.pem');
  writeFileSync(caFile, renewedCertificate().cert);
  events = [];
});
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
  await directory.close();
});

const startEdge = async (tls?: { key: string; cert: string }): Promise<ScriptedEdge> => {
  const edge = await new ScriptedEdge(tls).listen();
  cleanUps.push(() => edge.close());
  return edge;
};

const startProxy = async (options: ConnectProxyOptions): Promise<TestProxy> => {
  const proxy = await startConnectProxy(options);
  cleanUps.push(() => proxy.close());
  return proxy;
};

const dial = async (options: Partial<ConnectOptions> & { server: string }): Promise<Client> => {
  const onStatus = (event: StatusEvent): void => void events.push(event);
  const client = await connect({ token: 'tnl_secret', random: () => 0.5, onStatus, ...options });
  cleanUps.push(() => client.close());
  return client;
};

const failure = async (options: Partial<ConnectOptions> & { server: string }): Promise<Fault> => {
  const error: unknown = await dial(options).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof Fault) return error;
  throw new Error(`expected a fault, got ${String(error)}`);
};

const urlOf = (proxy: TestProxy, scheme = 'http'): string => `${scheme}://ann:sesame@127.0.0.1:${proxy.port}`;

/** Expects every connection to the edge to use the proxy. */
const isWhole = (edge: ScriptedEdge, proxy: TestProxy, target: string) =>
  eventually(() => {
    expect(edge.session.mux.liveCarriers).toBe(2);
    // Three requests: the control connection and two carriers.
    expect(proxy.requests).toEqual(Array(3).fill({ target, credentials: 'ann:sesame' }));
  });

describe('the control connection and every carrier use the proxy', () => {
  const server = 'a.edge.test:443';

  it('an HTTP proxy, with TLS to the edge and a host name that the proxy resolves', async () => {
    const edge = await startEdge(renewedCertificate());
    const proxy = await startProxy({ credentials: 'ann:sesame', leadsTo: edge });
    await dial({ server, caFile, proxy: urlOf(proxy) });
    await isWhole(edge, proxy, server);
  });

  it('an HTTPS proxy, with TLS to the proxy and a second TLS connection to the edge inside', async () => {
    const edge = await startEdge(renewedCertificate());
    const proxy = await startProxy({ credentials: 'ann:sesame', leadsTo: edge, tls: renewedCertificate() });
    // The proxy is dialed as localhost, a name in the test certificate; the edge is verified under its own host name.
    await dial({ server, caFile, proxy: urlOf(proxy, 'https').replace('127.0.0.1', 'localhost') });
    await isWhole(edge, proxy, server);
  });

  it('a socks5h proxy', async () => {
    const edge = await startEdge(renewedCertificate());
    const proxy = await startSocksProxy({ credentials: 'ann:sesame', leadsTo: edge });
    cleanUps.push(() => proxy.close());
    await dial({ server, caFile, proxy: urlOf(proxy, 'socks5h') });
    await isWhole(edge, proxy, server);
  });

  it('a proxy that intercepts TLS, if its CA is trusted', async () => {
    const edge = await startEdge(renewedCertificate());
    const proxy = await startProxy({ credentials: 'ann:sesame', leadsTo: edge, opensTls: renewedCertificate() });
    await dial({ server, caFile, proxy: urlOf(proxy) });
    await isWhole(edge, proxy, server);
  });

  it('an explicit proxy for an unencrypted edge on the same computer', async () => {
    const edge = await startEdge();
    const proxy = await startProxy({ credentials: 'ann:sesame' });
    await dial({ server: edge.address, proxy: urlOf(proxy) });
    await isWhole(edge, proxy, edge.address);
  });

  it('the proxy password reaches neither the edge nor the client’s events', async () => {
    const edge = await startEdge();
    const proxy = await startProxy({ credentials: 'ann:sesame' });
    const client = await dial({ server: edge.address, proxy: urlOf(proxy) });
    await eventually(() => expect(edge.session.mux.liveCarriers).toBe(2));
    expect(JSON.stringify(edge.session.received)).not.toContain('sesame');
    expect(inspect([client, events], { depth: 20, showHidden: true })).not.toContain('sesame');
  });
});

describe('unencrypted connections stay on this computer', () => {
  it('a remote edge behind a local proxy requires TLS unless TLS is turned off explicitly', async () => {
    const edge = await startEdge();
    const proxy = await startProxy({ credentials: null, leadsTo: edge });
    const fault = await failure({ server: 'a.edge.test:4040', proxy: urlOf(proxy) });
    // The error code proves an attempt with TLS: the client sent nothing unencrypted.
    expect(fault.code).toBe('CLIENT_SERVER_SPEAKS_PLAIN');
    await dial({ server: 'a.edge.test:4040', proxy: urlOf(proxy), tls: false });
    expect(edge.sessions).toHaveLength(1);
  });
});

describe('a proxy that rejects the client', () => {
  it('ends the first start at once with CLIENT_PROXY_AUTH', async () => {
    const proxy = await startProxy({ credentials: 'ann:other' });
    const fault = await failure({ server: 'a.edge.test:443', proxy: urlOf(proxy) });
    expect(fault.code).toBe('CLIENT_PROXY_AUTH');
    expect(proxy.requests).toHaveLength(1);
    expect(events.map(({ type }) => type)).toEqual(['connecting', 'closed']);
    expect(inspect([fault, events], { depth: 20 })).not.toContain('sesame');
  });

  it('ends the first start at once even with `wait`', async () => {
    const proxy = await startProxy({ credentials: 'ann:other' });
    expect(await failure({ server: 'a.edge.test:443', proxy: urlOf(proxy), wait: true })).toMatchObject({
      code: 'CLIENT_PROXY_AUTH',
    });
    const refusing = await startProxy({ leadsTo: { port: 1 } });
    expect(await failure({ server: 'a.edge.test:443', proxy: urlOf(refusing) })).toMatchObject({
      code: 'CLIENT_PROXY_REFUSED',
    });
    expect(refusing.requests).toHaveLength(1);
  });

  it('is retried after a minute once the client was connected, with the reason each time', async () => {
    const edge = await startEdge();
    const proxy = await startProxy({ credentials: 'ann:sesame' });
    const clock = new FakeClock();
    const client = await dial({ server: edge.address, proxy: urlOf(proxy), clock });
    await eventually(() => expect(edge.session.mux.liveCarriers).toBe(2));
    proxy.credentials = 'ann:changed';
    edge.session.cut();
    const pauses = (): number[] =>
      events.flatMap((event) =>
        event.type === 'reconnecting' && event.reason.includes('rejected the user name') ? [event.delayMs] : [],
      );
    await eventually(async () => {
      await clock.advance(10_000);
      expect(pauses()).toHaveLength(3);
    });
    for (const pause of pauses()) expect(pause).toBeGreaterThanOrEqual(60_000);
    expect(client.state).toBe('reconnecting');
    proxy.credentials = 'ann:sesame';
    await eventually(async () => {
      await clock.advance(10_000);
      expect(client.state).toBe('connected');
    });
  });

  it('an unreachable proxy is retried for 30 s at the start, and forever after a connection', async () => {
    const edge = await startEdge();
    const proxy = await startProxy({ credentials: 'ann:sesame' });
    const clock = new FakeClock();
    const client = await dial({ server: edge.address, proxy: urlOf(proxy), clock });
    await proxy.close();
    await eventually(async () => {
      await clock.advance(250);
      expect(events).toContainEqual(
        expect.objectContaining({ type: 'reconnecting', reason: expect.stringContaining('cannot reach the proxy') }),
      );
    });
    await startProxy({ credentials: 'ann:sesame', port: proxy.port });
    await eventually(async () => {
      await clock.advance(500);
      expect(client.state).toBe('connected');
      expect(edge.session.mux.liveCarriers).toBe(2);
    });
    await proxy.close();
    const other = new FakeClock();
    const late = failure({ server: 'a.edge.test:443', proxy: 'http://127.0.0.1:1', clock: other });
    let fault: Fault | undefined;
    void late.then((found) => {
      fault = found;
    });
    await eventually(async () => {
      await other.advance(250);
      expect(fault).toMatchObject({ code: 'CLIENT_PROXY_UNREACHABLE' });
    });
    expect(other.monotonic()).toBeGreaterThanOrEqual(30_000);
  });
});

describe('an unexpected response behind a proxy', () => {
  it('tells through the proxy whether the server speaks TLS', async () => {
    const edge = await startEdge();
    const proxy = await startProxy({ leadsTo: edge });
    expect(await failure({ server: 'a.edge.test:443', proxy: urlOf(proxy) })).toMatchObject({
      code: 'CLIENT_SERVER_SPEAKS_PLAIN',
    });
    const secure = await startEdge(renewedCertificate());
    const other = await startProxy({ leadsTo: secure });
    expect(await failure({ server: 'a.edge.test:443', proxy: urlOf(other), tls: false })).toMatchObject({
      code: 'CLIENT_SERVER_SPEAKS_TLS',
    });
  });

  it('is a certificate error when the proxy intercepts TLS and `caFile` is not set', async () => {
    const edge = await startEdge(renewedCertificate());
    const proxy = await startProxy({ leadsTo: edge, opensTls: renewedCertificate() });
    const fault = await failure({ server: 'a.edge.test:443', proxy: urlOf(proxy) });
    expect(fault.code).toBe('CLIENT_CERTIFICATE');
    expect(edge.sessions).toEqual([]);
  });
});

it('datagrams use carriers behind a proxy, but try their own path to an edge on this computer', async () => {
  const offer = {
    type: 'DatagramPath',
    ports: [1, 2],
    path: { id: 'ab'.repeat(8), key_to_edge: 'A'.repeat(43), key_to_client: 'B'.repeat(43) },
    observe: null,
  } as const;
  const ways = async (options: Partial<ConnectOptions> & { server: string }, edge: ScriptedEdge): Promise<string[]> => {
    events = [];
    const client = await dial(options);
    edge.session.send(offer as never);
    await client.open({ protocol: 'udp', name: 'dns', localPort: 53 });
    await eventually(() => expect(events.some(({ type }) => type === 'datagrams')).toBe(true));
    return events.flatMap((event) => (event.type === 'datagrams' ? [event.reason] : []));
  };
  const edge = await startEdge(renewedCertificate());
  const proxy = await startProxy({ leadsTo: edge });
  expect(await ways({ server: 'a.edge.test:443', caFile, proxy: urlOf(proxy) }, edge)).toEqual(['off']);
  const here = await startEdge();
  expect(
    (
      await ways(
        { server: here.address, proxy: urlOf(proxy).replace(/:\d+$/, `:${(await startProxy({})).port}`) },
        here,
      )
    )[0],
  ).toBe('probing');
});

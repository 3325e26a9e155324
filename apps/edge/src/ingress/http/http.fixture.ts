// An HTTP ingress with a real client session and any local service behind it. Used by tests only.

import * as net from 'node:net';
import type { ConnectionGate } from '@tunnel/http-shell';
import { acceptingServer, connectSocket, type MuxSession, type MuxStream, splice } from '@tunnel/mux';
import { CAPABILITY, type StreamHead } from '@tunnel/protocol';
import { InFlight } from '@tunnel/rules/rate';
import { MemberHealth } from '@tunnel/rules/tunnels';
import { systemClock } from '@tunnel/runtime';
import { FakeClock, rethrow, type SessionPair, sessionPair } from '@tunnel/testkit';
import { TunnelCounters } from '../../backend/tunnel-counters.ts';
import { Balancer } from '../../routing/balancer.ts';
import { HttpRouter, type HttpRouterOptions } from '../../routing/http-router.ts';
import { isGroup, type Route } from '../../routing/registry.ts';
import { NO_POLICY, type PolicyHolder } from '../../routing/route-policy.ts';
import type { Tunnel } from '../../routing/tunnel.ts';
import { MuxUpstream } from '../../upstream/upstream.ts';
import { openGate } from '../gate.fixture.ts';
import { HttpIngress, type HttpIngressOptions } from './http-ingress.ts';

export interface HttpStand {
  readonly ingress: HttpIngress;
  readonly gate: ConnectionGate;
  readonly tunnel: Tunnel;
  readonly pair: SessionPair;
  readonly clock: FakeClock;
  readonly port: number;
  /** Names held for an absent client. */
  readonly held: Set<string>;
  /** Number of connections to the local service since the start. */
  readonly dials: number;
  localPort: number;
  stop(): void;
}

/** Dials the local service for a stream, as a client does for every stream. */
export const dialLocal = (stream: MuxStream, port: number): void => {
  connectSocket({ host: '127.0.0.1', port, timeoutMs: 5000, clock: systemClock }).then(
    (local) => {
      stream.accept();
      splice(stream, local, { onDone: () => {}, abandon: rethrow });
    },
    (error: NodeJS.ErrnoException) => stream.refuse({ code: 'dial-refused', text: error.code ?? '' }),
  );
};

/** Creates the tunnel `web`, which belongs to no group by default. */
export const newHttpTunnel = (
  mux: MuxSession,
  { http, ...rest }: Partial<Omit<Tunnel, 'http'>> & { readonly http?: Partial<Tunnel['http']> | undefined } = {},
): Tunnel => ({
  tunnelId: 'tun_1',
  sessionId: 'ses_1',
  name: 'web',
  protocol: 'http',
  endpoint: { kind: 'name', name: 'web' },
  group: null,
  label: 'web',
  publicUrl: 'http://web.edge.test',
  assignedPort: null,
  http: { hostHeader: null, localProtocol: 'http1', capture: true, ...http },
  flowIdleSecs: null,
  clientAddr: '127.0.0.1:1',
  owner: { kind: 'operator' },
  connectedSince: 0,
  counters: new TunnelCounters(),
  health: new MemberHealth(null),
  alertWebhook: null,
  policy: NO_POLICY,
  proxyProtocol: null,
  upstream: new MuxUpstream(mux),
  ...rest,
});

/** Options of an ingress, its router and its balancer. */
export interface IngressOptions extends HttpIngressOptions, HttpRouterOptions {
  readonly gate: ConnectionGate;
  readonly counts: InFlight;
  readonly random: () => number;
}

/**
 * Starts an ingress with a plain port. The host `web` has the given route, and so have `1-web` and `2-web`, like names below a wildcard.
 */
export const startIngress = async (
  route: Route,
  options: Partial<IngressOptions> & Pick<IngressOptions, 'clock'>,
): Promise<{ ingress: HttpIngress; gate: ConnectionGate; port: number; held: Set<string>; stop: () => void }> => {
  const held = new Set<string>();
  const gate = options.gate ?? openGate({ trustedProxies: options.trustedProxies ?? [] });
  const ingress = new HttpIngress({
    router: new HttpRouter({
      domain: 'edge.test',
      tunnels: {
        at: (endpoint) => (endpoint.kind === 'name' && /^(?:\d+-)?web$/.test(endpoint.name) ? route : undefined),
      },
      names: { isHeld: ({ name }) => held.has(name), isHeldForTls: () => false },
      reserved: { isReserved: () => false, accountOfDomain: () => null },
      trustedProxies: [],
      redirectPort: () => null,
      takesClients: false,
      ...options,
    }),
    balancer: new Balancer({
      counts: new InFlight({ perKey: 1000 }),
      random: Math.random,
      ...options,
    }),
    isListed: (service) => (isGroup(route) ? route.get(service.tunnelId) === service : route === service),
    captures: { begin: () => null, answered: () => null, idOf: () => '' },
    headTimeoutMs: 15_000,
    firstByteTimeoutMs: 60_000,
    report: rethrow,
    ...options,
    gate,
  });
  ingress.start();
  const server = acceptingServer({
    keepAliveMs: 60_000,
    report: rethrow,
    where: 'http.connection',
    take: (socket) => {
      const accepted = gate.accept('http', socket);
      if (accepted !== null) ingress.accept(socket, 'http', accepted);
    },
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as net.AddressInfo;
  const stop = (): void => {
    server.close();
    ingress.stop();
  };
  return { ingress, gate, port, held, stop };
};

export const startHttpStand = async (
  localPort: number,
  {
    http,
    policy = NO_POLICY,
    onStream: take,
    ...options
  }: Partial<IngressOptions> & {
    readonly http?: Partial<Tunnel['http']>;
    readonly policy?: PolicyHolder;
    /** Handles a stream at the client. By default, the client dials the service. */
    readonly onStream?: (stream: MuxStream, head: StreamHead) => void;
  } = {},
): Promise<HttpStand> => {
  const clock = new FakeClock();
  let dials = 0;
  const stand = { localPort };
  const onStream = (stream: MuxStream, head: StreamHead): void => {
    dials += 1;
    if (take === undefined) dialLocal(stream, stand.localPort);
    else take(stream, head);
  };
  const capabilities = [CAPABILITY.POLICY];
  const pair = await sessionPair({ kind: 'plain', carriers: 2, capabilities, client: { onStream } });
  const tunnel = newHttpTunnel(pair.edge, { http, policy });
  const { ingress, gate, port, held, stop: close } = await startIngress(tunnel, { clock, ...options });
  const stop = (): void => {
    close();
    pair.close();
  };
  return Object.defineProperties(
    Object.assign(stand, { ingress, gate, tunnel, pair, clock, port, held, stop, dials }),
    {
      dials: { get: () => dials },
    },
  );
};

/** Sends the request unchanged, and returns the bytes received until the connection ends, or until `until` has arrived. */
export const talk = (port: number, request: string, until?: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = net.connect({ port, host: '127.0.0.1' });
    let answer = '';
    const done = (): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.on('data', (chunk: Buffer) => {
      answer += chunk.toString('latin1');
      if (until !== undefined && answer.includes(until)) done();
    });
    socket.on('end', done);
    socket.on('error', reject);
    socket.write(request, 'latin1');
  });

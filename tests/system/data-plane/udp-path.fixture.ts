// An edge, a client with a UDP tunnel to an echo service, and a controllable network for TCP and UDP between them: the client knows the
// edge by another loopback address, where relays stand in for the edge. Both use a clock five times as fast as the system clock.
import { createSocket, type Socket } from 'node:dgram';
import { type Client, connect, type StatusEvent, type Tunnel } from '@tunnel/client';
import { loadServerConfig } from '@tunnel/config/server';
import { createEdge, type Edge } from '@tunnel/edge';
import { type Clock, createLogger, Secret } from '@tunnel/runtime';
import {
  eventually,
  FastClock,
  type Relay,
  startRelay,
  startUdpEcho,
  startUdpRelay,
  type UdpRelay,
  type UdpService,
} from '@tunnel/testkit';

const EDGE_HOST = '127.0.0.1';
const CLIENT_SEES = '127.0.0.2';
const logger = createLogger({ level: 'silent', format: 'json' });

export interface UdpPathStageOptions {
  readonly path?: 'auto' | 'carrier';
  /** UDP traffic that the network blocks from the first packet on. */
  readonly block?: UdpRelay['block'];
}

/**
 * Speed of the clock. A UDP path in use is considered doubtful after two seconds of silence, which is 400 ms of real time. At a higher
 * speed, a busy machine would look like a blocked path.
 */
const SPEED = 5;

export class UdpPathStage {
  readonly clock: Clock;
  edge: Edge;
  readonly tcp: Relay;
  /** UDP relay, or null if the edge opened no UDP ports. */
  readonly udp: UdpRelay | null;
  readonly client: Client;
  readonly tunnel: Tunnel;
  /** Paths that the client reported, in order: `udp`, or `carrier` with the reason. */
  readonly ways: string[] = [];
  readonly #service: UdpService;
  readonly #visitor: Socket;
  readonly #answers: string[] = [];

  private constructor(
    options: Pick<UdpPathStage, 'clock' | 'edge' | 'tcp' | 'udp' | 'client' | 'tunnel' | 'ways'>,
    service: UdpService,
  ) {
    this.clock = options.clock;
    this.edge = options.edge;
    this.tcp = options.tcp;
    this.udp = options.udp;
    this.client = options.client;
    this.tunnel = options.tunnel;
    this.ways = options.ways;
    this.#service = service;
    this.#visitor = createSocket('udp4', (bytes) => this.#answers.push(bytes.toString('latin1')));
  }

  static async open({ path = 'auto', block = 'nothing' }: UdpPathStageOptions = {}): Promise<UdpPathStage> {
    const clock = new FastClock(SPEED);
    const edge = await startEdge(clock, path);
    const { control, udpPorts } = edge.addresses;
    const tcp = await startRelay({ host: CLIENT_SEES, target: control });
    const [port] = udpPorts;
    const udp =
      port === undefined ? null : await startUdpRelay({ host: CLIENT_SEES, port, target: { host: EDGE_HOST, port } });
    if (udp !== null) udp.block = block;
    const ways: string[] = [];
    const onStatus = (event: StatusEvent): void => {
      if (event.type === 'datagrams') ways.push(`${event.path} ${event.reason}`.trim());
    };
    const client = await connect({ server: `${CLIENT_SEES}:${tcp.port}`, token: 'admin', onStatus, logger, clock });
    const service = await startUdpEcho();
    const tunnel = await client.open({ protocol: 'udp', localPort: service.port, name: 'echo' });
    return new UdpPathStage({ clock, edge, tcp, udp, client, tunnel, ways }, service);
  }

  /** Returns the path of the client as reported by the edge. */
  async edgeWay(): Promise<string> {
    const { path, reason } = (await this.#flows()) as { path: string; reason: string };
    return `${path} ${reason}`.trim();
  }

  async dropped(): Promise<Record<string, number>> {
    return ((await this.#flows()) as { dropped: Record<string, number> }).dropped;
  }

  /** Sends a text from a visitor through the tunnel until the service has echoed it. */
  async echo(text: string): Promise<void> {
    await eventually(() => {
      this.say(text);
      if (!this.#answers.includes(text)) throw new Error(`no answer to ${text}`);
    });
  }

  say(text: string): void {
    this.#visitor.send(text, Number(new URL(this.tunnel.publicUrl).port), EDGE_HOST);
  }

  heard(text: string): boolean {
    return this.#answers.includes(text);
  }

  /** Waits until client and edge report the given path. */
  async settle(way: string, timeoutMs = 15_000): Promise<void> {
    await eventually(
      async () => {
        const both = [this.ways.at(-1), await this.edgeWay()];
        if (both.some((each) => each !== way)) throw new Error(`client and edge are at ${both.join(' and ')}`);
      },
      { timeoutMs },
    );
  }

  /** Replaces the edge by a new edge at the same ports. */
  async restartEdge(): Promise<void> {
    const { control, udpPorts } = this.edge.addresses;
    await this.edge.stop({ drainMs: 0 });
    this.edge = await startEdge(this.clock, 'auto', control.port, udpPorts);
  }

  async close(): Promise<void> {
    this.#visitor.close();
    await this.client.close();
    await this.tcp.close();
    this.udp?.close();
    await this.edge.stop({ drainMs: 0 });
    await this.#service.close();
  }

  async #flows(): Promise<unknown> {
    const url = `http://${EDGE_HOST}:${this.edge.addresses.api.port}/api/tunnels/${this.tunnel.tunnelId}/flows`;
    return (await fetch(url, { headers: { authorization: 'Bearer admin' } })).json();
  }
}

const startEdge = async (
  clock: Clock,
  path: 'auto' | 'carrier',
  controlPort = 0,
  ports: readonly number[] = [0, 0],
): Promise<Edge> => {
  const config = loadServerConfig({
    env: {},
    overrides: {
      server: {
        host: EDGE_HOST,
        control_port: controlPort,
        api_port: 0,
        metrics_port: 0,
        http_port: 0,
        domain: 'localhost',
      },
      udp: { path, ports: path === 'auto' ? [...ports] : [] },
      p2p: { enabled: false },
    },
  });
  const edge = createEdge(config, { clock, logger, adminToken: new Secret('admin') });
  await edge.start();
  return edge;
};

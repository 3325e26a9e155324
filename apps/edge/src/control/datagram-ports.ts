// The edge's two UDP ports, for datagram paths and for peers discovering their public address. Opens the ports, keeps tunnels from using
// them, and passes each packet to its listener. Sends nothing.
import type { RemoteInfo } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { ServerConfig } from '@tunnel/config/server';
import { Fault } from '@tunnel/errors';
import { PacketSocket, type ReportInternalError } from '@tunnel/mux';
import type { EndpointRegistry, PortRange } from '../routing/endpoints.ts';

export interface DatagramPortsConfig {
  readonly server: Pick<ServerConfig['server'], 'host'>;
  readonly udp: Pick<ServerConfig['udp'], 'enabled' | 'path' | 'ports'>;
  readonly p2p: Pick<ServerConfig['p2p'], 'enabled' | 'direct'>;
  readonly limits: Pick<ServerConfig['limits'], 'udp_port_range'>;
}

interface DatagramPortsOptions {
  readonly endpoints: Pick<EndpointRegistry, 'reserve' | 'release'>;
  readonly logger: Record<'info' | 'warn', (fields: object, text: string) => void>;
  readonly report: ReportInternalError;
}

export type PacketListener = (packet: Buffer, from: RemoteInfo, via: PacketSocket) => void;

/** Owner name of the edge's two UDP ports in the endpoint registry. */
const OWNER = 'the UDP paths of the edge';
const KEY = '[udp] ports';
/** Minimum size of the port range: two ports for the edge and at least one for tunnels. */
const RANGE_MIN_PORTS = 3;

interface OpenPort {
  readonly socket: PacketSocket;
  readonly port: number;
}

export class DatagramPorts {
  readonly name = 'udp ports';
  /** True if datagrams of udp tunnels can use the edge's UDP ports. */
  readonly carriesDatagrams: boolean;
  /** True if clients can discover their public address through the ports, for direct p2p connections. */
  readonly observes: boolean;
  readonly #host: string;
  /** The two configured ports, or empty to use the two highest free ports of the range. */
  readonly #wanted: readonly number[];
  readonly #range: PortRange;
  readonly #options: DatagramPortsOptions;
  #open: readonly OpenPort[] = [];
  #listener: PacketListener = () => {};

  constructor({ server, udp, p2p, limits }: DatagramPortsConfig, options: DatagramPortsOptions) {
    this.carriesDatagrams = udp.enabled && udp.path === 'auto';
    this.observes = p2p.enabled && p2p.direct;
    this.#host = server.host;
    this.#wanted = udp.ports;
    this.#range = { from: limits.udp_port_range[0], to: limits.udp_port_range[1] };
    this.#options = options;
  }

  /** Numbers of the edge's two open UDP ports, or an empty array. */
  get numbers(): readonly number[] {
    return this.#open.map(({ port }) => port);
  }

  onPacket(listener: PacketListener): void {
    this.#listener = listener;
  }

  /** Opens the ports. Rejects with a fault naming the port if a configured port cannot be opened. */
  async start(): Promise<void> {
    if (!this.carriesDatagrams && !this.observes) return;
    const family = await familyOf(this.#host);
    this.#open = this.#wanted.length === 0 ? await this.#openHighest(family) : await this.#openConfigured(family);
    const [first] = this.#open;
    if (first === undefined) return this.#sayNone();
    const fields = { ports: this.numbers, receive_buffer_bytes: first.socket.receiveBufferBytes };
    this.#options.logger.info(fields, 'UDP ports for datagrams and peers opened');
  }

  async stop(): Promise<void> {
    for (const { socket } of this.#open) socket.close();
    this.#open = [];
  }

  async #openConfigured(family: 4 | 6): Promise<OpenPort[]> {
    const open: OpenPort[] = [];
    try {
      for (const port of this.#wanted) {
        const opened = await this.#bind(family, port);
        if (opened === null) throw new Fault('CONFIG_PORT_TAKEN', { host: this.#host, port, key: KEY });
        open.push(opened);
        this.#keepFromTunnels(opened.port);
      }
      return open;
    } catch (error) {
      for (const { socket } of open) socket.close();
      throw error;
    }
  }

  async #openHighest(family: 4 | 6): Promise<OpenPort[]> {
    const { from, to } = this.#range;
    const open: OpenPort[] = [];
    if (to - from + 1 < RANGE_MIN_PORTS) return open;
    for (let port = to; port >= from && open.length < 2; port -= 1) {
      // A port held for a client of the previous run is not free.
      if (!this.#keepFromTunnels(port)) continue;
      const opened = await this.#bind(family, port);
      if (opened === null) this.#giveBack(port);
      else open.push(opened);
    }
    if (open.length === 2) return open;
    for (const { socket, port } of open) {
      socket.close();
      this.#giveBack(port);
    }
    return [];
  }

  /** Opens a UDP port of the edge. Returns null if another program uses the port. */
  async #bind(family: 4 | 6, port: number): Promise<OpenPort | null> {
    const host = this.#host;
    const { report } = this.#options;
    const socket: PacketSocket = new PacketSocket({
      family,
      report,
      onPacket: (packet, from) => this.#listener(packet, from, socket),
    });
    try {
      return { socket, port: (await socket.bind(host, port)).port };
    } catch (error) {
      socket.close();
      const { code, message } = error as NodeJS.ErrnoException;
      if (code === 'EADDRINUSE') return null;
      throw new Fault('CONFIG_PORT_DENIED', { host, port, key: KEY, reason: code ?? message }, { cause: error });
    }
  }

  /** Reserves a port for the edge. Returns false if the port is outside the range or taken. */
  #keepFromTunnels(port: number): boolean {
    const endpoint = { kind: 'port', transport: 'udp', port } as const;
    return this.#options.endpoints.reserve(endpoint, OWNER, Number.POSITIVE_INFINITY);
  }

  #giveBack(port: number): void {
    this.#options.endpoints.release({ kind: 'port', transport: 'udp', port }, OWNER);
  }

  #sayNone(): void {
    const { from, to } = this.#range;
    this.#options.logger.warn(
      { range: `${from}-${to}` },
      'udp_port_range has no two free ports besides the tunnel ports, so datagrams use carriers and peers use the relay; set [udp] ports or widen the range',
    );
  }
}

const familyOf = async (host: string): Promise<4 | 6> => {
  if (isIP(host) !== 0) return isIP(host) as 4 | 6;
  return (await lookup(host)).family as 4 | 6;
};

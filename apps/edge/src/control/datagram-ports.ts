// The two UDP ports of the edge, for the paths of datagrams and for peers that ask how they look from outside. Opens them, keeps tunnels away from
// them, and hands each packet to whoever knows the path id that it bears. Nothing is answered here.
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

interface DatagramPortsParts {
  readonly endpoints: Pick<EndpointRegistry, 'reserve' | 'release'>;
  readonly logger: Record<'info' | 'warn', (fields: object, text: string) => void>;
  readonly report: ReportInternalError;
}

export type PacketListener = (packet: Buffer, from: RemoteInfo, via: PacketSocket) => void;

/** Whose the two ports are among the endpoints: nobody's tunnel. */
const OWNER = 'the UDP paths of the edge';
const KEY = '[udp] ports';
/** Two for us, and one that a tunnel can have. */
const RANGE_MIN_PORTS = 3;

interface OpenPort {
  readonly socket: PacketSocket;
  readonly port: number;
}

export class DatagramPorts {
  readonly name = 'udp ports';
  /** Datagrams of udp tunnels may go by them. */
  readonly carriesDatagrams: boolean;
  /** P2P may go direct: clients are shown how they look from outside. */
  readonly observes: boolean;
  readonly #host: string;
  /** Two, or none for the two highest free ones of the range. */
  readonly #wanted: readonly number[];
  readonly #range: PortRange;
  readonly #parts: DatagramPortsParts;
  #open: readonly OpenPort[] = [];
  #listener: PacketListener = () => {};

  constructor({ server, udp, p2p, limits }: DatagramPortsConfig, parts: DatagramPortsParts) {
    this.carriesDatagrams = udp.enabled && udp.path === 'auto';
    this.observes = p2p.enabled && p2p.direct;
    this.#host = server.host;
    this.#wanted = udp.ports;
    this.#range = { from: limits.udp_port_range[0], to: limits.udp_port_range[1] };
    this.#parts = parts;
  }

  /** The two, or none. */
  get numbers(): readonly number[] {
    return this.#open.map(({ port }) => port);
  }

  onPacket(listener: PacketListener): void {
    this.#listener = listener;
  }

  /** Rejects with a fault that names the port when a configured one cannot be had. */
  async start(): Promise<void> {
    if (!this.carriesDatagrams && !this.observes) return;
    const family = await familyOf(this.#host);
    this.#open = this.#wanted.length === 0 ? await this.#openHighest(family) : await this.#openConfigured(family);
    const [first] = this.#open;
    if (first === undefined) return this.#sayNone();
    const fields = { ports: this.numbers, receive_buffer_bytes: first.socket.receiveBufferBytes };
    this.#parts.logger.info(fields, 'UDP ports for datagrams and peers opened');
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
      // One that a client of the last run may come back to is not free.
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

  /** null: another program has it. */
  async #bind(family: 4 | 6, port: number): Promise<OpenPort | null> {
    const host = this.#host;
    const { report } = this.#parts;
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

  /** false: it is out of the range, or somebody's. */
  #keepFromTunnels(port: number): boolean {
    const endpoint = { kind: 'port', transport: 'udp', port } as const;
    return this.#parts.endpoints.reserve(endpoint, OWNER, Number.POSITIVE_INFINITY);
  }

  #giveBack(port: number): void {
    this.#parts.endpoints.release({ kind: 'port', transport: 'udp', port }, OWNER);
  }

  #sayNone(): void {
    const { from, to } = this.#range;
    this.#parts.logger.warn(
      { range: `${from}-${to}` },
      'udp_port_range has no two free ports besides the tunnel ports, so datagrams use carriers and peers use the relay; set [udp] ports or widen the range',
    );
  }
}

const familyOf = async (host: string): Promise<4 | 6> => {
  if (isIP(host) !== 0) return isIP(host) as 4 | 6;
  return (await lookup(host)).family as 4 | 6;
};

// The two UDP ports of the edge, for the paths of datagrams and for peers that ask how they look from outside. Opens them, keeps tunnels away from
// them, and hands each packet to whoever knows the path id that it bears. Nothing is answered here.
import type { RemoteInfo } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { Fault } from '@tunnel/errors';
import { PacketSocket, type ReportInternalError } from '@tunnel/mux';
import type { Logger } from '@tunnel/runtime';
import type { EndpointRegistry, PortRange } from '../routing/endpoints.ts';

export interface DatagramPortsOptions {
  /** false: nothing needs them. */
  readonly wanted: boolean;
  readonly host: string;
  /** `[udp] ports`: two, or none for the two highest free ones of the range. */
  readonly ports: readonly number[];
  readonly range: PortRange;
  readonly endpoints: Pick<EndpointRegistry, 'reserve' | 'release'>;
  readonly logger: Pick<Logger, 'info' | 'warn'>;
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
  readonly #options: DatagramPortsOptions;
  #open: readonly OpenPort[] = [];
  #listener: PacketListener = () => {};

  constructor(options: DatagramPortsOptions) {
    this.#options = options;
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
    const { wanted, host, ports } = this.#options;
    if (!wanted) return;
    const family = await familyOf(host);
    this.#open = ports.length === 0 ? await this.#openHighest(family) : await this.#openConfigured(family);
    const [first] = this.#open;
    if (first === undefined) return this.#sayNone();
    const fields = { ports: this.numbers, receive_buffer_bytes: first.socket.receiveBufferBytes };
    this.#options.logger.info(fields, 'the UDP ports for datagrams and peers are open');
  }

  stop(): void {
    for (const { socket } of this.#open) socket.close();
    this.#open = [];
  }

  async #openConfigured(family: 4 | 6): Promise<OpenPort[]> {
    const open: OpenPort[] = [];
    try {
      for (const port of this.#options.ports) {
        const opened = await this.#bind(family, port);
        if (opened === null) throw new Fault('CONFIG_PORT_TAKEN', { host: this.#options.host, port, key: KEY });
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
    const { from, to } = this.#options.range;
    const open: OpenPort[] = [];
    if (to - from + 1 < RANGE_MIN_PORTS) return open;
    for (let port = to; port >= from && open.length < 2; port -= 1) {
      // One that a client of the last run may come back to is not free.
      if (!this.#keepFromTunnels(port)) continue;
      const opened = await this.#bind(family, port);
      if (opened === null) this.#options.endpoints.release({ kind: 'port', transport: 'udp', port }, OWNER);
      else open.push(opened);
    }
    if (open.length === 2) return open;
    for (const { socket } of open) socket.close();
    return [];
  }

  /** null: another program has it. */
  async #bind(family: 4 | 6, port: number): Promise<OpenPort | null> {
    const { host, report } = this.#options;
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
    return this.#options.endpoints.reserve(endpoint, OWNER, Number.POSITIVE_INFINITY);
  }

  #sayNone(): void {
    const { from, to } = this.#options.range;
    this.#options.logger.warn(
      { range: `${from}-${to}` },
      'udp_port_range has no two free ports beside those for tunnels: datagrams stay on carriers and peers on the relay; give [udp] ports or a larger range',
    );
  }
}

const familyOf = async (host: string): Promise<4 | 6> => {
  if (isIP(host) !== 0) return isIP(host) as 4 | 6;
  return (await lookup(host)).family as 4 | 6;
};

// One tunnel as its owner sees it, and as the client keeps it across connections.
import { Fault } from '@tunnel/errors';
import type { MessageOf, TunnelProtocol } from '@tunnel/protocol';
import type { RetryPace } from './retry-pace.ts';
import { Traffic, type TrafficCounts } from './traffic.ts';

export interface TunnelSpec {
  readonly protocol: TunnelProtocol;
  /** For people; `<protocol>-<port>` when left out. */
  readonly name?: string;
  /** 127.0.0.1 when left out. */
  readonly localHost?: string;
  readonly localPort: number;
  /** This public port or none. */
  readonly remotePort?: number;
}

/**
 * opening: asked for, never answered yet · open: visitors are served · away: the connection is lost, or the edge
 * did not give it back yet; it is asked for again by itself · closed: over, on purpose or by the edge's word.
 */
export type TunnelState = 'opening' | 'open' | 'away' | 'closed';

export interface Tunnel {
  readonly state: TunnelState;
  readonly name: string;
  readonly protocol: TunnelProtocol;
  readonly localHost: string;
  readonly localPort: number;
  /** Empty until the edge has answered; may change when a client returns late. */
  readonly tunnelId: string;
  readonly publicUrl: string;
  readonly assignedPort: number | undefined;
  readonly label: string;
  readonly warnings: readonly string[];
  readonly counts: TrafficCounts;
  /** No new visitors; those that are there may finish. */
  close(): Promise<void>;
}

/** What an earlier run or connection had, to be asked for again. */
export interface TunnelMemory {
  readonly tunnelId?: string;
  readonly assignedPort?: number;
}

type Answer = MessageOf<'TunnelRegistered'>;

export class KeptTunnel implements Tunnel {
  readonly name: string;
  readonly protocol: TunnelProtocol;
  readonly localHost: string;
  readonly localPort: number;
  readonly remotePort: number | undefined;
  readonly traffic = new Traffic();
  readonly pace: RetryPace;
  /** Settles with the edge's first answer. */
  readonly opened: Promise<Tunnel>;
  lastLocalNoticeAt = Number.NEGATIVE_INFINITY;
  #state: TunnelState = 'opening';
  #memory: TunnelMemory;
  #answer: Answer | undefined;
  readonly #closer: (tunnel: KeptTunnel) => Promise<void>;
  #resolveOpened: (tunnel: Tunnel) => void = () => {};
  #rejectOpened: (fault: Fault) => void = () => {};

  constructor(spec: TunnelSpec, deps: { pace: RetryPace; closer: (tunnel: KeptTunnel) => Promise<void> }) {
    this.protocol = spec.protocol;
    this.localHost = spec.localHost ?? '127.0.0.1';
    this.localPort = spec.localPort;
    this.name = spec.name ?? `${spec.protocol}-${spec.localPort}`;
    this.remotePort = spec.remotePort;
    this.pace = deps.pace;
    this.#closer = deps.closer;
    this.#memory = {};
    this.opened = new Promise((resolve, reject) => {
      this.#resolveOpened = resolve;
      this.#rejectOpened = reject;
    });
    // open() hands the promise on; an end before that must not count as unhandled.
    this.opened.catch(() => {});
  }

  get state(): TunnelState {
    return this.#state;
  }

  /** The same tunnel in an earlier run has the same key. */
  get key(): string {
    return `${this.protocol}|${this.name}|${this.localHost}:${this.localPort}`;
  }

  get memory(): TunnelMemory {
    return this.#memory;
  }

  get tunnelId(): string {
    return this.#answer?.tunnel_id ?? '';
  }

  get publicUrl(): string {
    return this.#answer?.public_url ?? '';
  }

  get assignedPort(): number | undefined {
    return this.#answer?.assigned_port;
  }

  get label(): string {
    return this.#answer?.label ?? '';
  }

  get warnings(): readonly string[] {
    return this.#answer?.warnings ?? [];
  }

  get counts(): TrafficCounts {
    return this.traffic.counts();
  }

  close(): Promise<void> {
    return this.#closer(this);
  }

  recall(memory: TunnelMemory): void {
    this.#memory = memory;
  }

  /** The session that knew the id is gone for good; the port may still be asked for. */
  forgetId(): void {
    const { assignedPort } = this.#memory;
    this.#memory = assignedPort === undefined ? {} : { assignedPort };
  }

  /** Returns how the answer differs from the one before. */
  registered(answer: Answer): 'opened' | 'back' | 'moved' {
    const before = this.#answer;
    this.#answer = answer;
    this.#state = 'open';
    this.#memory = {
      tunnelId: answer.tunnel_id,
      ...(answer.assigned_port === undefined ? {} : { assignedPort: answer.assigned_port }),
    };
    this.pace.connected();
    this.#resolveOpened(this);
    if (before === undefined) return 'opened';
    return before.public_url === answer.public_url ? 'back' : 'moved';
  }

  lost(): void {
    if (this.#state === 'open') this.#state = 'away';
  }

  ended(fault?: Fault): void {
    this.#state = 'closed';
    this.#rejectOpened(fault ?? new Fault('TUNNEL_CLOSED'));
  }
}

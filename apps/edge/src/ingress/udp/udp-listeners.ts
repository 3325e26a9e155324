// The public ports of udp tunnels: one socket each, bound as long as the port is somebody's. A port whose client is away stays bound, so
// that nobody else gets it, visitors are not told that nobody is there, and flows go on when the client is back.
import { Fault } from '@tunnel/errors';
import type { ConnectionGate } from '@tunnel/http-shell';
import { guard } from '@tunnel/mux';
import { type Clock, type Logger, LogLimiter, type Timer } from '@tunnel/runtime';
import { EDGE_LIMITS } from '../../limits.ts';
import { type ShownFlows, UdpPort, type UdpPortParts } from './udp-port.ts';
import { SendBlocks, UdpSocket } from './udp-socket.ts';
import type { UdpTotals } from './udp-totals.ts';

interface Listener {
  readonly port: UdpPort;
  readonly opened: Promise<UdpSocket>;
  /** Whom its descriptor counts for. */
  account: string;
}

export interface UdpListenersOptions extends UdpPortParts {
  readonly host: string;
  readonly gate: Pick<ConnectionGate, 'openPort' | 'closePort'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class UdpListeners {
  readonly #options: UdpListenersOptions;
  readonly #log: LogLimiter;
  readonly #blocks = new SendBlocks();
  readonly #listeners = new Map<number, Listener>();
  /** Sockets on their way out: the port is bound until then. */
  readonly #closing = new Map<number, Promise<void>>();
  #ticking: Timer | null = null;
  #isDraining = false;
  #isBufferLogged = false;
  #idleWaiters: (() => void)[] = [];
}

// Output for programs: events of a run with stable names and fields, printed one per line.
import {
  type Client,
  type PeerConnection,
  protocolTraits,
  type SessionFacts,
  type StatusEvent,
  type Tunnel,
} from '@tunnel/client';
import type { Fault } from '@tunnel/errors';
import type { Clock } from '@tunnel/runtime';
import type { ReloadOutcome } from '@tunnel/tunnel-spec';
import type { ExitCode } from '../io/exit-codes.ts';
import type { Io } from '../io/io.ts';
import { hintOf } from '../io/problem-report.ts';
import { BatchedLines } from './batched-lines.ts';
import { type FinishedRequest, LineOutput } from './lines.ts';
import { tunnelPage } from './live-block.ts';
import { fanOut, type Output, type RemovedTunnel, type ShownRequest } from './output.ts';
import { listenText } from './peers.ts';

export interface JsonEvent {
  readonly event: string;
  readonly at: string;
  readonly [field: string]: unknown;
}

type ReadyFields = (tunnel: Tunnel) => Readonly<Record<string, unknown>>;

/** Creates the output of `--json`. `moreOfReady` returns a command's additional fields for the `ready` event of a tunnel. */
export const jsonOutput = (
  io: Pick<Io, 'stdout' | 'stderr' | 'clock' | 'beforeCrash'>,
  moreOfReady?: ReadyFields,
): Output => {
  const lines = new BatchedLines(io, { droppedText: (count) => jsonLine(droppedEvent(count, io.clock)) });
  const print = (event: JsonEvent): unknown =>
    BATCHED.has(event.event) ? lines.add(jsonLine(event)) : lines.stdout.write(jsonLine(event));
  const events = new JsonEvents(io.clock, print, moreOfReady);
  return fanOut([new ErrorLines(lines), events, { onEnd: () => lines.close() }]);
};

/** Events as frequent as requests, which are printed in batches. */
const BATCHED: ReadonlySet<string> = new Set(['request', 'edge_answered']);

export const jsonLine = (event: object): string => `${JSON.stringify(event)}\n`;

/** Returns the JSON event printed in place of lines that had to be dropped. */
export const droppedEvent = (lines: number, clock: Pick<Clock, 'now'>): JsonEvent => ({
  event: 'log_dropped',
  at: new Date(clock.now()).toISOString(),
  lines,
});

/** Error messages for people on stderr, in addition to the JSON events on stdout. */
class ErrorLines extends LineOutput {
  constructor({ stderr }: Pick<Io, 'stderr'>) {
    super({ stdout: { write: () => {} }, stderr });
  }
}

/** Converts the events of a run to the events of `--json`, of the agent and of log files. */
export class JsonEvents implements Output {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #tell: (event: JsonEvent) => void;
  readonly #moreOfReady: ReadyFields;
  #client: Pick<Client, 'session'> | null = null;
  #inspectUrl: string | null = null;

  constructor(clock: Pick<Clock, 'now'>, tell: (event: JsonEvent) => void, moreOfReady: ReadyFields = () => ({})) {
    this.#clock = clock;
    this.#tell = tell;
    this.#moreOfReady = moreOfReady;
  }

  onClient(client: Pick<Client, 'session'>): void {
    this.#client = client;
  }

  onStatus(event: StatusEvent): void {
    switch (event.type) {
      case 'tunnel-opened':
        return this.#write('ready', this.#readyFields(event.tunnel));
      case 'tunnel-moved':
        return this.#write('ready', { ...this.#readyFields(event.tunnel), previous_url: event.previousUrl });
      case 'reconnecting':
        return this.#write('reconnecting', {
          attempt: event.attempt,
          delay_ms: event.delayMs,
          reason: event.reason,
          planned: event.planned,
        });
      case 'reconnected':
        return this.#write('reconnected', { resumed: event.resumed });
      case 'health':
        return this.#write('health', {
          name: event.tunnel.name,
          tunnel_id: event.tunnel.tunnelId,
          group: event.tunnel.group,
          healthy: event.healthy,
          reason: event.reason,
          consecutive_failures: event.consecutiveFailures,
        });
      case 'datagrams':
        return this.#write('datagrams', { name: event.tunnel.name, path: event.path, reason: event.reason });
      case 'peer-error':
        return this.#write('error', {
          ...errorFields(event.fault),
          name: event.connection.name,
          tunnel_id: null,
          fatal: false,
        });
      case 'tunnel-error':
      case 'local-error':
        return this.#write('error', {
          ...errorFields(event.fault),
          name: event.tunnel.name,
          tunnel_id: event.tunnel.tunnelId === '' ? null : event.tunnel.tunnelId,
          fatal: false,
        });
      default:
        return this.#onPeerStatus(event);
    }
  }

  #onPeerStatus(event: StatusEvent): void {
    switch (event.type) {
      case 'peer-ready':
        return this.#write('ready', connectionFields(event.connection, this.#client?.session ?? null));
      case 'peer':
        return this.#write('peer', {
          name: event.tunnel.name,
          peer_id: event.peerId,
          state: event.state,
          client_addr: event.clientAddr,
          reason: event.reason,
        });
      case 'path':
        return this.#write('path', {
          name: event.name,
          peer_id: event.peerId,
          path: event.path,
          reason: event.reason,
          rtt_ms: event.rttMs,
        });
      default:
        return;
    }
  }

  onRequest(event: ShownRequest): void {
    this.#tell(requestEvent(event, this.#clock));
  }

  onNotice(): void {}

  onReloading(): void {}

  onReloaded(outcome: ReloadOutcome): void {
    this.#write('reloaded', { ...outcome });
  }

  onReloadRefused(fault: Fault): void {
    this.#write('error', { ...errorFields(fault), fatal: false });
  }

  onRemoved({ name, tunnelId, reason }: RemovedTunnel): void {
    this.#write('tunnel_removed', { name, tunnel_id: tunnelId === '' ? null : tunnelId, reason });
  }

  /** Keeps the inspector's URL for the `ready` events of tunnels with requests. */
  onInspector(url: string | null): void {
    this.#inspectUrl = url;
  }

  onFailure(fault: Fault): void {
    this.#write('error', { ...errorFields(fault), fatal: true });
  }

  onDrain(): void {}

  onEnd(code: ExitCode): void {
    this.#write('closed', { exit_code: code });
  }

  #readyFields(tunnel: Tunnel) {
    return { ...readyFields(tunnel, this.#client?.session ?? null, this.#inspectUrl), ...this.#moreOfReady(tunnel) };
  }

  #write(event: string, fields: Readonly<Record<string, unknown>>): void {
    this.#tell({ event, at: new Date(this.#clock.now()).toISOString(), ...fields });
  }
}

/** Converts a request to an event. `at` of the event is the time when the request began. */
export const requestEvent = (event: ShownRequest, clock: Pick<Clock, 'now'>): JsonEvent => {
  if (event.type === 'request-finished') return finishedEvent(event);
  const { name, tunnelId: tunnel_id } = event.tunnel;
  if (event.type === 'edge-answered-more') {
    const at = new Date(clock.now()).toISOString();
    return { event: 'edge_answered_more', at, name, tunnel_id, count: event.count };
  }
  return {
    event: 'edge_answered',
    at: new Date(event.at).toISOString(),
    id: event.id,
    name,
    tunnel_id,
    method: event.method,
    path: event.path,
    status: event.status,
    code: event.code,
    rule: event.rule,
    duration_ms: Math.round(event.durationMs * 10) / 10,
  };
};

const finishedEvent = (event: FinishedRequest): JsonEvent => ({
  event: 'request',
  at: new Date(event.at).toISOString(),
  id: event.id,
  name: event.tunnel.name,
  method: event.method,
  path: event.path,
  status: event.status,
  duration_ms: Math.round(event.durationMs * 10) / 10,
  request_bytes: event.requestBytes,
  response_bytes: event.responseBytes,
  aborted: event.aborted,
  replay_of: event.replayOf,
});

/** Returns the fields of the `ready` event of an open tunnel. */
export const readyFields = (tunnel: Tunnel, session: SessionFacts | null, inspectUrl: string | null) => ({
  public_url: tunnel.publicUrl,
  tunnel_id: tunnel.tunnelId,
  name: tunnel.name,
  protocol: tunnel.protocol,
  assigned_port: tunnel.assignedPort,
  local: tunnel.local,
  inspect_url: protocolTraits(tunnel.protocol).carriesRequests ? inspectUrl : null,
  ...accountFields(session, tunnelPage(session, tunnel.tunnelId)),
  group: tunnel.group,
  health: tunnel.health,
  warnings: tunnel.warnings,
  ...(tunnel.guard === null ? {} : { guard: tunnel.guard }),
  ...(tunnel.service === null ? {} : { role: 'publish', service: tunnel.service }),
});

/** Returns the account, the region of the edge, and the dashboard page. Empty on an edge without a platform. */
const accountFields = (session: SessionFacts | null, page: string | null) => {
  if (session === null || session.account === null) return {};
  const { account, plan, regionId: id, regionName: name } = session;
  return { account, plan, region: { id, name }, dashboard_url: page };
};

/** Returns the fields of a peer connection's `ready` event: the fields of every `ready` event, and the fields of peer connections. */
const connectionFields = ({ name, p2pName, service, listen }: PeerConnection, session: SessionFacts | null) => ({
  public_url: `p2p://${p2pName}`,
  tunnel_id: null,
  name,
  protocol: 'p2p',
  assigned_port: null,
  local: null,
  inspect_url: null,
  ...accountFields(session, session?.dashboardUrl ?? null),
  group: null,
  health: 'none',
  warnings: [],
  role: 'connect',
  service,
  listen: listen === null ? null : listenText(listen),
});

const errorFields = (fault: Fault) => ({ code: fault.code, message: fault.message, next: hintOf(fault) });

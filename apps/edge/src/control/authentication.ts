// Handles the first frame of a control connection: checks the protocol version and the API key, then starts or resumes a session. Rejected
// keys are counted per network, and a network with too many is blocked.

import { Fault } from '@tunnel/errors';
import { agreeOn, CAPABILITIES, CARRIER_PATH, type MessageOf, SUPPORTED_VERSIONS, WIRE_LIMITS } from '@tunnel/protocol';
import { networkOf, reachesOwnMachine } from '@tunnel/rules/net';
import { SlidingWindows } from '@tunnel/rules/rate';
import { type Owner } from '@tunnel/rules/tunnels';
import type { Clock } from '@tunnel/runtime';
import type { Backend, OwnerProfile } from '../backend/backend.ts';
import type { SessionMuxes } from './carriers.ts';
import type { ControlConnection } from './control-connection.ts';
import type { DatagramPaths } from './datagram-paths.ts';
import { RESUME_WINDOW_MS } from './limits.ts';
import type { Session } from './session.ts';
import type { Sessions } from './sessions.ts';

/** Carriers per session. A lost packet stalls only one carrier; more carriers would cost handshakes and memory. */
const CARRIERS_PER_SESSION_DEFAULT = 4;

export interface AuthenticateContext {
  readonly backend: Pick<Backend, 'verifyKey'>;
  readonly failures: AuthFailures;
  readonly sessions: Sessions;
  readonly muxes: SessionMuxes;
  readonly paths: Pick<DatagramPaths, 'messageFor'>;
  readonly region: { readonly id: string; readonly name: string };
  /** Ports of the edge's admin API, for clients on the same machine. */
  readonly localPorts?: () => readonly number[];
  readonly isDraining: () => boolean;
  /** Called once the owner of a connection is known. Returns a fault if the owner has reached the connection limit. */
  readonly admit: (owner: Owner, as: 'session' | 'replacement') => Fault | null;
  /** Optional protocol features of this edge. Default: every feature of the build. */
  readonly capabilities?: readonly string[];
}

type Auth = MessageOf<'Auth'>;

/**
 * Authenticates a connection. Returns false if the connection was rejected; the client has then been notified and the connection closed.
 */
export const authenticate = async (
  context: AuthenticateContext,
  connection: ControlConnection,
  message: Auth,
): Promise<boolean> => {
  const version = agreeOn(message.versions, SUPPORTED_VERSIONS).at(-1);
  const early = earlyRefusal(context, connection, message, version);
  if (early !== null) {
    connection.refuseAuth(early, retryAfterOf(early));
    return false;
  }
  const verdict = await context.backend.verifyKey(message.token);
  if (!connection.isOpen) return false;
  if (!verdict.ok) {
    // Only a 401 counts as a failed key; a temporary failure of the check does not.
    if (verdict.fault.status === 401) context.failures.failed(connection.peer.address);
    connection.refuseAuth(verdict.fault);
    return false;
  }
  const refusal = context.admit(
    verdict.owner,
    replacesConnection(context, message, verdict.owner) ? 'replacement' : 'session',
  );
  if (refusal !== null) {
    connection.refuseAuth(refusal);
    return false;
  }
  try {
    const { session, secret, resumed } = openSession(context, connection, message, verdict);
    const { profile } = verdict;
    sendAuthOk(context, connection, session, { version: version as number, secret, resumed, profile });
    const path = session.upstream.mux === null ? null : context.paths.messageFor(session.upstream.mux);
    if (path !== null) connection.send(path);
    return true;
  } catch (error) {
    connection.refuseAuth(Fault.from(error));
    return false;
  }
};

const earlyRefusal = (
  context: AuthenticateContext,
  connection: ControlConnection,
  message: Auth,
  version: number | undefined,
): Fault | null => {
  if (context.isDraining()) return new Fault('EDGE_SHUTTING_DOWN');
  if (version === undefined) {
    const values = { offered: message.versions.join(', '), supported: SUPPORTED_VERSIONS.join(', ') };
    return new Fault('CONTROL_VERSION_UNSUPPORTED', values);
  }
  const seconds = context.failures.blockedForSecs(connection.peer.address);
  return seconds > 0 ? new Fault('AUTH_TOO_MANY_FAILURES', { seconds }) : null;
};

const retryAfterOf = (fault: Fault): number | undefined => {
  const { seconds } = fault.values;
  return typeof seconds === 'number' ? seconds : undefined;
};

/** Whether the client resumes a session with a connection still considered open. The new connection then replaces the old connection. */
const replacesConnection = ({ sessions }: AuthenticateContext, { resume }: Auth, owner: Owner): boolean =>
  resume !== undefined &&
  sessions.claimed({ sessionId: resume.session_id, secret: resume.secret, owner })?.state.kind === 'live';

/** Resumes the claimed session. An invalid claim starts a new session instead, and the client registers its tunnels again. */
const openSession = (
  { sessions, capabilities: known = CAPABILITIES }: AuthenticateContext,
  connection: ControlConnection,
  { resume, capabilities: offered = [], client_name: clientName }: Auth,
  { owner, keyId }: Extract<Awaited<ReturnType<Backend['verifyKey']>>, { ok: true }>,
): { session: Session; secret: string; resumed: boolean } => {
  const who = { owner, keyId, capabilities: agreeOn(offered, known), clientName };
  if (resume !== undefined) {
    const claim = { sessionId: resume.session_id, secret: resume.secret, ...who };
    const session = sessions.resume(connection, claim);
    // The resume secret stays the same for the whole session: if a new secret were lost with the response, the session would be lost as
    // well.
    if (session !== null) return { session, secret: resume.secret, resumed: true };
  }
  return { ...sessions.start(connection, who, resume?.secret), resumed: false };
};

const sendAuthOk = (
  { muxes, region, localPorts = () => [] }: AuthenticateContext,
  connection: ControlConnection,
  session: Session,
  answer: { version: number; secret: string; resumed: boolean; profile: OwnerProfile | undefined },
): void => {
  const { version, secret, resumed, profile } = answer;
  const count = CARRIERS_PER_SESSION_DEFAULT;
  const ports = reachesOwnMachine(connection.peer.address) ? localPorts() : [];
  connection.send({
    type: 'AuthOk',
    version,
    session_id: session.sessionId,
    resumed,
    resume_secret: secret,
    resume_window_secs: RESUME_WINDOW_MS / 1000,
    region_id: region.id,
    ping_interval_secs: WIRE_LIMITS.CONTROL_PING_INTERVAL_MS / 1000,
    dead_after_secs: WIRE_LIMITS.CONTROL_DEAD_AFTER_MS / 1000,
    carriers: {
      count,
      path: CARRIER_PATH,
      tokens: session.upstream.mux === null ? [] : muxes.issueTokens(session.upstream.mux, count),
    },
    // The list of capabilities is omitted if empty, so that the bytes of AuthOk are identical to protocol version 1.
    ...(session.capabilities.length === 0 ? {} : { capabilities: [...session.capabilities] }),
    ...(profile === undefined ? {} : shownFields(profile, region)),
    ...(ports.length === 0 ? {} : { local_ports: [...ports] }),
  });
};

/** Returns the fields of AuthOk that the client displays: account, plan, region and dashboard. */
const shownFields = ({ account, plan, dashboardUrl }: OwnerProfile, { id, name }: AuthenticateContext['region']) => ({
  account,
  plan,
  region: { id, name },
  dashboard_url: dashboardUrl,
});

/** Limits for rejected keys. The minute starts with a network's first rejected key. */
const REFUSED_KEYS = { windowMs: 60_000, togetherMs: 60_000, keys: 10_000 };

/**
 * Counts rejected keys per network. The control port, the REST API and `/_speed` share the count, so that an attacker cannot switch between
 * them.
 */
export class AuthFailures {
  readonly #clock: Clock;
  readonly #refused: SlidingWindows;
  #total = 0;

  constructor(options: { readonly clock: Clock; readonly perMinute: number }) {
    this.#clock = options.clock;
    this.#refused = new SlidingWindows({ ...REFUSED_KEYS, perWindow: options.perMinute });
  }

  /** Number of rejected API keys since the start. */
  get total(): number {
    return this.#total;
  }

  blockedForSecs(address: string): number {
    return Math.ceil(this.#refused.retryAfterMs(networkOf(address), this.#clock.monotonic()) / 1000);
  }

  failed(address: string): void {
    this.#total += 1;
    this.#refused.record(networkOf(address), this.#clock.monotonic());
  }
}

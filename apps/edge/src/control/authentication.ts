// The first frame of a connection: version, key, and a session, new or taken up again. Refused keys are counted, and too many are stopped.

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

/** one lost packet stalls one carrier only; more of them cost handshakes and memory */
const CARRIERS_PER_SESSION_DEFAULT = 4;

export interface AuthenticateContext {
  readonly backend: Pick<Backend, 'verifyKey'>;
  readonly failures: AuthFailures;
  readonly sessions: Sessions;
  readonly muxes: SessionMuxes;
  readonly paths: Pick<DatagramPaths, 'messageFor'>;
  readonly region: { readonly id: string; readonly name: string };
  /** Ports where the edge itself is managed, for clients on its own machine. */
  readonly localPorts?: () => readonly number[];
  readonly isDraining: () => boolean;
  /** Whose connection it is, is known; a fault: there is no room for one more of theirs. */
  readonly admit: (owner: Owner, as: 'session' | 'replacement') => Fault | null;
  /** What this edge can do beyond the version; all that the build knows unless said otherwise. */
  readonly capabilities?: readonly string[];
}

type Auth = MessageOf<'Auth'>;

/** false: refused, said so, and closed. */
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
    // "Cannot be checked right now" is no guess at a key.
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

/** The edge still believes in the client's old connection, which ends with this. */
const replacesConnection = ({ sessions }: AuthenticateContext, { resume }: Auth, owner: Owner): boolean =>
  resume !== undefined &&
  sessions.claimed({ sessionId: resume.session_id, secret: resume.secret, owner })?.state.kind === 'live';

/** A claim that does not hold gives a new session: the client then asks for what it had. */
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
    // The same secret for the whole life: a new one could be lost with its answer, and the session with it.
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
    // Left out when there is none: the bytes are then those of version 1.
    ...(session.capabilities.length === 0 ? {} : { capabilities: [...session.capabilities] }),
    ...(profile === undefined ? {} : shownFields(profile, region)),
    ...(ports.length === 0 ? {} : { local_ports: [...ports] }),
  });
};

/** For people, on the client's screen. */
const shownFields = ({ account, plan, dashboardUrl }: OwnerProfile, { id, name }: AuthenticateContext['region']) => ({
  account,
  plan,
  region: { id, name },
  dashboard_url: dashboardUrl,
});

/** A minute begins with the first refused key of a network. */
const REFUSED_KEYS = { windowMs: 60_000, togetherMs: 60_000, keys: 10_000 };

/** Refused keys per network, a single count for the control port, REST and `/_speed`: each would be a way around the others. */
export class AuthFailures {
  readonly #clock: Clock;
  readonly #refused: SlidingWindows;
  #total = 0;

  constructor(options: { readonly clock: Clock; readonly perMinute: number }) {
    this.#clock = options.clock;
    this.#refused = new SlidingWindows({ ...REFUSED_KEYS, perWindow: options.perMinute });
  }

  /** Since the start. */
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

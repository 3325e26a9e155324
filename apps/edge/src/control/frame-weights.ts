// What each frame of a client costs it, in tokens of its connection and of its account, and how fast those come. Registrations have tokens of their own.

import type { ControlMessage, ControlType, decodeControl } from '@tunnel/protocol';
import type { ControlRateLimits } from './control-rate-limiter.rules.ts';

/** a longer frame costs one more token for each of these: to read 64 KiB of JSON takes as long as dozens of pings */
const CONTROL_FRAME_CHARS_PER_TOKEN = 4 * 1024;
/** a registration with a policy, which is judged and made ready, counts as one more for each of these: the largest take some 15 ms */
const CONTROL_POLICY_CHARS_PER_TOKEN = 512;
/** frames of one control connection in one turn of the event loop; the others have theirs in between */
export const CONTROL_FRAMES_PER_TURN = 64;

const TURN = { perTurn: CONTROL_FRAMES_PER_TURN, pauseMinMs: 50 };

/** Ping and health report cost one token, an odd frame five. A connection without a token is not read. */
export const CONTROL_RATE_LIMITS: ControlRateLimits = {
  connection: { perSecond: 100, burst: 400 },
  account: { perSecond: 400, burst: 1600 },
  ...TURN,
};

/** Of registrations, apart from all other frames; further ones wait for their turn. A client with 400 tunnels has them all at once. */
export const REGISTRATION_RATE_LIMITS: ControlRateLimits = {
  connection: { perSecond: 200, burst: 400 },
  account: { perSecond: 800, burst: 1600 },
  ...TURN,
};

/** Answered with an error: a frame that is none, is not known, or is not for a client to send. */
const ODD = 5;
/** Pings of the WebSocket itself, which need no decoding. */
export const SIGNAL_WEIGHT = 1;

/** What is not here is odd. A registration is paid for when it is its turn (`registrationWeight`). */
const WEIGHTS: Partial<Record<ControlType, number>> = {
  Auth: 1,
  Ping: 1,
  Pong: 1,
  TunnelHealthy: 1,
  TunnelUnhealthy: 1,
  UnregisterTunnel: 1,
  ShuttingDown: 1,
  Error: 1,
  RegisterTunnel: 0,
  RequestCarriers: 4,
  ConnectPeer: 4,
  DisconnectPeer: 1,
  PeerReport: 1,
  DatagramDrops: 1,
};

/** As many first reports as tunnels that a burst registers; more cannot be saved up. */
const FIRST_REPORTS_MAX = REGISTRATION_RATE_LIMITS.connection.burst;

/** Of one connection. */
export class FrameWeights {
  /** A registration pays for the first report of its tunnel: a client of many tunnels with probes would else be behind when it has just come. */
  #firstReports = 0;

  /** `characters` that had to be decoded: honest frames are far below what one more token is for. */
  of(decoded: ReturnType<typeof decodeControl>, characters: number): number {
    if (isRegistration(decoded)) return this.#ofMessage('RegisterTunnel');
    const forLength = Math.floor(characters / CONTROL_FRAME_CHARS_PER_TOKEN);
    return forLength + (decoded.ok ? this.#ofMessage(decoded.message.type) : ODD);
  }

  #ofMessage(type: ControlType): number {
    const weight = WEIGHTS[type] ?? ODD;
    if (type === 'RegisterTunnel') this.#firstReports = Math.min(FIRST_REPORTS_MAX, this.#firstReports + 1);
    const isReport = type === 'TunnelHealthy' || type === 'TunnelUnhealthy';
    if (!isReport || this.#firstReports === 0) return weight;
    this.#firstReports -= 1;
    return 0;
  }
}

const isRegistration = (decoded: ReturnType<typeof decodeControl>): boolean =>
  decoded.ok && decoded.message.type === 'RegisterTunnel';

/** In tokens of the pace of registrations. An unregistration was paid for when it was read. */
export const registrationWeight = (message: ControlMessage, characters: number): number => {
  if (message.type !== 'RegisterTunnel') return 0;
  // A policy is judged and made ready, which takes several times as long as to read it.
  const policy = CONTROL_POLICY_CHARS_PER_TOKEN;
  const other = CONTROL_FRAME_CHARS_PER_TOKEN;
  return 1 + Math.floor(characters / (message.policy === undefined ? other : policy));
};

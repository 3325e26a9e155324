// Costs of client frames in rate-limit tokens of the connection and the account, and the token rates. Registrations have separate tokens.

import type { ControlMessage, ControlType, decodeControl } from '@tunnel/protocol';
import type { ControlRateLimits } from './control-rate-limiter.rules.ts';

/** Characters per additional token of a long frame: parsing 64 KiB of JSON takes as long as dozens of pings. */
const CONTROL_FRAME_CHARS_PER_TOKEN = 4 * 1024;
/** Characters per additional token of a registration with a policy. Validating and compiling the largest policies takes about 15 ms. */
const CONTROL_POLICY_CHARS_PER_TOKEN = 512;
/** Maximum of frames per control connection and event-loop turn, so that other connections get their turn. */
export const CONTROL_FRAMES_PER_TURN = 64;

const TURN = { perTurn: CONTROL_FRAMES_PER_TURN, pauseMinMs: 50 };

/** Rate limits for frames. A ping or health report costs one token, an invalid frame five. A connection without tokens is not read. */
export const CONTROL_RATE_LIMITS: ControlRateLimits = {
  connection: { perSecond: 100, burst: 400 },
  account: { perSecond: 400, burst: 1600 },
  ...TURN,
};

/**
 * Rate limits for registrations, separate from other frames. Registrations above the rate are queued. The burst lets a client open 400
 * tunnels at once.
 */
export const REGISTRATION_RATE_LIMITS: ControlRateLimits = {
  connection: { perSecond: 200, burst: 400 },
  account: { perSecond: 800, burst: 1600 },
  ...TURN,
};

/** Cost of a frame answered with an error: invalid, unknown, or not allowed for clients. */
const ODD = 5;
/** Cost of a WebSocket ping or pong for the rate limit. They need no decoding. */
export const SIGNAL_WEIGHT = 1;

/**
 * Cost per frame type. Types not listed cost as much as invalid frames. A registration is charged when its turn comes
 * (`registrationWeight`).
 */
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

/** Maximum of prepaid first health reports: as many as tunnels in a registration burst. */
const FIRST_REPORTS_MAX = REGISTRATION_RATE_LIMITS.connection.burst;

/** Costs of a control connection's frames for the rate limit. */
export class FrameWeights {
  /**
   * Prepaid first health reports. A registration includes the first report of its tunnel; otherwise a client with many health checks would
   * be throttled right after connecting.
   */
  #firstReports = 0;

  /** Returns the cost of a frame. `characters` is its length; ordinary frames are far too short to cost additional tokens. */
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

/** Returns the cost of a queued message in registration tokens. An unregistration was charged when it was read. */
export const registrationWeight = (message: ControlMessage, characters: number): number => {
  if (message.type !== 'RegisterTunnel') return 0;
  // Validating and compiling a policy takes several times as long as parsing it.
  const policy = CONTROL_POLICY_CHARS_PER_TOKEN;
  const other = CONTROL_FRAME_CHARS_PER_TOKEN;
  return 1 + Math.floor(characters / (message.policy === undefined ? other : policy));
};

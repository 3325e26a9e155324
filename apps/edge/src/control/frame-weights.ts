// What each frame of a client costs it, in tokens of its connection and of its account.
import type { ControlType, decodeControl } from '@tunnel/protocol';

/** Answered with an error: a frame that is none, is not known, or is not for a client to send. */
const ODD = 5;
/** Pings of the WebSocket itself, which need no decoding. */
export const SIGNAL_WEIGHT = 1;

/** What is not here is odd. A registration opens ports, so it costs more; a client of 100 tunnels has them all in one burst. */
const WEIGHTS: Partial<Record<ControlType, number>> = {
  Auth: 1,
  Ping: 1,
  Pong: 1,
  TunnelHealthy: 1,
  TunnelUnhealthy: 1,
  UnregisterTunnel: 1,
  ShuttingDown: 1,
  Error: 1,
  RegisterTunnel: 4,
  RequestCarriers: 4,
};

export const weightOf = (decoded: ReturnType<typeof decodeControl>): number =>
  decoded.ok ? (WEIGHTS[decoded.message.type] ?? ODD) : ODD;

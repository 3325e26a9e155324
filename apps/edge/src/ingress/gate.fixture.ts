// A connection gate for tests of a single part, with room for all connections of a test by default. Used by tests only.

import { ConnectionGate } from '@tunnel/http-shell';
import { Admission } from '@tunnel/rules/admission';
import { type Clock, createLogger, type Logger, systemClock } from '@tunnel/runtime';

export interface GateOptions {
  readonly visitors?: number;
  readonly control?: number;
  readonly api?: number;
  readonly perNetwork?: number;
  readonly trustedProxies?: readonly string[];
  readonly clock?: Clock;
  readonly logger?: Logger;
  readonly handshakesPerSecond?: number;
  readonly lateMs?: () => number;
}

export const openGate = (options: GateOptions = {}): ConnectionGate => {
  const { visitors = 1000, control = 1000, api = 1000, perNetwork = 1000, trustedProxies = [] } = options;
  const { clock = systemClock, logger = createLogger({ level: 'silent', format: 'json' }) } = options;
  const { handshakesPerSecond = 0, lateMs = () => 0 } = options;
  const admission = new Admission({ limits: { visitors, control, api }, perNetwork, handshakesPerSecond });
  return new ConnectionGate({ admission, trustedProxies, clock, logger, lateMs });
};

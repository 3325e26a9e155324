// The gate of one process: how many connections it takes, from its descriptors and `[limits]`, which it says once, at its start.

import { type ServerConfig } from '@tunnel/config/server';
import {
  Admission,
  apiAlone,
  connectionTotal,
  type ShareLimits,
  shareLimits,
  spareDescriptors,
} from '@tunnel/rules/admission';
import { type Clock, descriptorLimit, type Logger } from '@tunnel/runtime';
import { ConnectionGate } from './connection-gate.ts';

type ConnectionLimits = Pick<
  ServerConfig['limits'],
  'connections_total' | 'connections_per_address' | 'handshakes_per_second'
>;

export interface ProcessGateOptions {
  readonly trustedProxies: readonly string[];
  /** What the process takes in: an edge everybody, a platform callers of its API alone. */
  readonly takes: 'visitors, clients and callers' | 'callers';
  /** However many descriptors there are. */
  readonly callersMax: number;
  readonly clock: Clock;
  readonly logger: Logger;
  /** As the system says, unless told. */
  readonly descriptors?: number;
}

export interface ProcessGate {
  readonly gate: ConnectionGate;
  /** For the log, at the start. */
  announce(): void;
}

export const createProcessGate = (limits: ConnectionLimits, options: ProcessGateOptions): ProcessGate => {
  const { takes, callersMax, logger, descriptors = descriptorLimit() } = options;
  const { total, isOverDescriptors } = connectionTotal(descriptors, limits.connections_total);
  const shares: ShareLimits = takes === 'callers' ? apiAlone(total) : shareLimits(total);
  const bounded = { ...shares, api: Math.min(shares.api, callersMax) };
  const admission = new Admission({
    limits: bounded,
    perNetwork: limits.connections_per_address,
    handshakesPerSecond: limits.handshakes_per_second,
    spare: spareDescriptors(descriptors, total),
  });
  const announce = (): void => {
    logger.info({ descriptors, connections: total, ...bounded }, 'connection limits');
    if (!isOverDescriptors) return;
    const fields = { connections_total: limits.connections_total, descriptors, connections: total };
    logger.warn(
      fields,
      '[limits] connections_total exceeds the file descriptor limit of this process; the lower limit applies',
    );
  };
  return { gate: new ConnectionGate({ ...options, admission }), announce };
};

/**
 * Far above what edge and platform of one stack hold: the link between them has its own, so that no flood of callers cuts it. Most of
 * them are calls that wait for a request, two descriptors each: where there are few descriptors, there are fewer of them.
 */
const STACK_CONNECTIONS = { min: 256, max: 1280, descriptorsEach: 8 } as const;

export const createStackGate = (
  options: Pick<ProcessGateOptions, 'clock' | 'logger' | 'descriptors'>,
): ConnectionGate => {
  const { min, max, descriptorsEach } = STACK_CONNECTIONS;
  const { descriptors = descriptorLimit() } = options;
  const total = Math.min(max, Math.max(min, Math.floor(descriptors / descriptorsEach)));
  const admission = new Admission({ limits: apiAlone(total), perNetwork: total });
  return new ConnectionGate({ ...options, admission, trustedProxies: [] });
};

// Gate of a process. The number of connections depends on the file descriptors and `[limits]`, and is logged once at the start.

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
  /** Peers that the process accepts: an edge accepts visitors, clients and API callers; a platform accepts only API callers. */
  readonly takes: 'visitors, clients and callers' | 'callers';
  /** Maximum connections of API callers, regardless of the number of file descriptors. */
  readonly callersMax: number;
  readonly clock: Clock;
  readonly logger: Logger;
  /** File descriptor limit of the process. Default: as reported by the system. */
  readonly descriptors?: number;
}

export interface ProcessGate {
  readonly gate: ConnectionGate;
  /** Logs the connection limits. Called at the start. */
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
 * Limits for connections between edge and platform in the same server. They have a separate gate, so that a flood of API callers cannot
 * block them, and far more room than needed. Most of these connections wait for an API call and use two descriptors each, so the limit is
 * lower if there are few descriptors.
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

// Additional local services of an http tunnel, by the names used in its policy. The edge can choose only from this table of the client.
import { Fault } from '@tunnel/errors';
import { WIRE_LIMITS } from '@tunnel/protocol';
import { problemOfServiceName } from '@tunnel/tunnel-spec';
import { type DialTarget, isPort, type LocalTls, localText } from './local-target.ts';

/** Additional local services by name, each with a local port or `host:port`. */
export type ServiceTable = Readonly<Record<string, number | string>>;

interface ServiceAddress {
  readonly host: string;
  readonly port: number;
}

const HOST_AND_PORT = /^(?:(\[[0-9a-f:.%]+\]|[^\s:/?#@[\]]+):)?(\d{1,5})$/i;
const DEFAULT_HOST = '127.0.0.1';

/** Parses the address of an additional local service. Returns null if it is invalid. */
const addressOf = (given: unknown): ServiceAddress | null => {
  if (typeof given === 'number') return isPort(given) ? { host: DEFAULT_HOST, port: given } : null;
  if (typeof given !== 'string') return null;
  const [, host = DEFAULT_HOST, digits = ''] = HOST_AND_PORT.exec(given) ?? [];
  const port = Number(digits);
  return isPort(port) ? { host: host.replace(/^\[|\]$/g, ''), port } : null;
};

/** Throws a Fault for an invalid table. Types are checked too, because library users may lack a type checker. */
export const checkServices = (services: ServiceTable): void => {
  const refuse = (reason: string): Fault => new Fault('CLIENT_USAGE', { reason });
  const entries = Object.entries(services);
  if (entries.length > WIRE_LIMITS.REGISTER_SERVICES_MAX) {
    throw refuse(`a tunnel can have at most ${WIRE_LIMITS.REGISTER_SERVICES_MAX} additional services`);
  }
  for (const [name, given] of entries) {
    const problem = problemOfServiceName(name);
    if (problem !== null) throw refuse(`'${name}' is not a valid service name: ${problem}`);
    if (addressOf(given) === null) throw refuse(`the service '${name}' must be a port, or host:port`);
  }
};

/** Returns the targets of a checked table. Additional services use the TLS settings of the tunnel's main service. */
export const serviceTargets = (services: ServiceTable, tls: LocalTls): ReadonlyMap<string, DialTarget> =>
  new Map(
    Object.entries(services).flatMap(([name, given]) => {
      const address = addressOf(given);
      return address === null ? [] : [[name, { kind: 'address', ...address, tls }]];
    }),
  );

/** Returns the table in normalized form, so that two tables with the same targets are equal. */
export const serviceTexts = (services: ServiceTable): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(services).flatMap(([name, given]) => {
      const address = addressOf(given);
      return address === null ? [] : [[name, localText({ local_host: address.host, local_port: address.port })]];
    }),
  );

// What a tunnel is asked to be: what its owner says, what of it can work, and what the edge is told.
import { Fault } from '@tunnel/errors';
import {
  type ControlMessageInput,
  decodeControl,
  encodeControl,
  type TunnelProtocol,
  tunnelProtocol,
} from '@tunnel/protocol';
import { checkGroupSpec, type GroupSpec, groupWishes } from './group-spec.ts';

export interface TunnelSpec extends GroupSpec {
  /** `https`: the local service speaks TLS. */
  readonly protocol: TunnelProtocol;
  /** For people; `<protocol>-<port>` when left out. */
  readonly name?: string;
  /** 127.0.0.1 when left out. */
  readonly localHost?: string;
  readonly localPort: number;
  /** tcp: this public port or none. */
  readonly remotePort?: number;
  /** HTTP: this name or none. */
  readonly subdomain?: string;
  /** HTTP: `keep` the visitor's Host (the default), `rewrite` it to the local address, or send this one. */
  readonly hostHeader?: string;
  /** HTTP: what the local service speaks, `http1` when left out. */
  readonly localProtocol?: 'http1' | 'h2c';
  /** https: false accepts any certificate of the local service. */
  readonly localTlsVerify?: boolean;
  /** HTTP: false keeps no request for a look or a replay, neither at the edge nor here. */
  readonly capture?: boolean;
}

/** What an earlier run or connection had, to be asked for again. */
export interface TunnelMemory {
  readonly tunnelId?: string;
  readonly assignedPort?: number;
  readonly assignedSubdomain?: string;
}

/** What the frame has room for; within it the edge says what it takes. */
const NAME_FRAME_UNITS = 200;
/** The longest name of DNS. */
const HOST_MAX_CHARS = 253;

type Registration = Extract<ControlMessageInput, { type: 'RegisterTunnel' }>;
type Wishes = Omit<Registration, 'type' | 'request_id' | 'name' | 'protocol' | 'local_addr'>;

export const isHttp = (protocol: TunnelProtocol): boolean => protocol === 'http' || protocol === 'https';

/** Throws a Fault. A control frame with one of these would be refused as a whole, and nobody would know which tunnel was meant. */
export const checkTunnelSpec = (spec: TunnelSpec): void => {
  const { hostHeader, subdomain, protocol, localProtocol } = spec;
  checkPlace(spec);
  if (localProtocol === 'h2c' && protocol !== 'http') {
    throw new Fault('CLIENT_USAGE', { reason: 'h2c is HTTP/2 without TLS: it goes with http, not with https' });
  }
  if (hostHeader !== undefined && !/^[!-~]{1,255}$/.test(hostHeader)) {
    throw new Fault('CLIENT_USAGE', {
      reason: 'the Host header must be keep, rewrite or a name of visible characters',
    });
  }
  if (subdomain !== undefined && subdomain.length > 300) {
    throw new Fault('CLIENT_USAGE', { reason: 'the subdomain has more than 63 characters' });
  }
  checkGroupSpec(spec);
  checkFrame(spec);
};

/** Whatever else has no words of its own above: better here than as a frame that nobody answers. */
const checkFrame = (spec: TunnelSpec): void => {
  const { protocol, name = '' } = spec;
  const read = decodeControl(
    encodeControl({ type: 'RegisterTunnel', request_id: 'r', name, protocol, ...wishesOf(spec, {}) }),
  );
  if (!read.ok) throw new Fault('CLIENT_USAGE', { reason: read.fault.message });
};

/** Callers of the library may come without a type checker. */
const checkPlace = ({ protocol, name = '', localHost = '127.0.0.1', localPort, remotePort }: TunnelSpec): void => {
  const refuse = (reason: string): Fault => new Fault('CLIENT_USAGE', { reason });
  if (!tunnelProtocol.safeParse(protocol).success) throw refuse(`a tunnel is ${tunnelProtocol.options.join(', ')}`);
  if (!isPort(localPort)) throw refuse('the local port must be a whole number from 1 to 65535');
  if (remotePort !== undefined && !isPort(remotePort)) {
    throw refuse('the public port must be a whole number from 1 to 65535');
  }
  if (typeof name !== 'string' || name.length > NAME_FRAME_UNITS) {
    throw refuse('the name of a tunnel must be a text of at most 100 characters');
  }
  if (typeof localHost !== 'string' || localHost === '' || localHost.length > HOST_MAX_CHARS) {
    throw refuse(`the local host must be a text of 1 to ${HOST_MAX_CHARS} characters`);
  }
};

const isPort = (port: unknown): boolean => Number.isInteger(port) && Number(port) >= 1 && Number(port) <= 65_535;

/**
 * What was given is asked for or nothing; what the edge once chose is a wish. Of a group's member the wish counts only
 * where groups are off, or for the port of a group that is gone: else its place is the group's.
 */
export const wishesOf = (spec: TunnelSpec, memory: TunnelMemory): Wishes => ({
  ...groupWishes(spec),
  ...placeWishes(spec, memory),
});

const placeWishes = (spec: TunnelSpec, memory: TunnelMemory): Wishes => {
  const { tunnelId, assignedPort, assignedSubdomain } = memory;
  const id = tunnelId === undefined ? {} : { tunnel_id: tunnelId };
  if (!isHttp(spec.protocol)) {
    if (spec.remotePort !== undefined) return { ...id, remote_port: spec.remotePort };
    return assignedPort === undefined ? id : { ...id, preferred_port: assignedPort };
  }
  const name = assignedSubdomain === undefined ? {} : { preferred_subdomain: assignedSubdomain };
  return {
    ...id,
    ...(spec.subdomain === undefined ? name : { subdomain: spec.subdomain }),
    host_header: spec.hostHeader ?? 'keep',
    local_protocol: spec.localProtocol ?? 'http1',
    capture: spec.capture ?? true,
  };
};

/** As a Host header would name it: `rewrite` sends exactly this. */
export const localAddress = (protocol: TunnelProtocol, host: string, port: number): string => {
  const name = host.includes(':') ? `[${host}]` : host;
  const isOwnPort = (protocol === 'http' && port === 80) || (protocol === 'https' && port === 443);
  return isOwnPort ? name : `${name}:${port}`;
};

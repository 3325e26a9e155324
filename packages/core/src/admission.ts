// Decides whether a session may register a tunnel, and which port it may ask the leases for. Says; never does.
import { Fault } from '@tunnel/errors';
import type { PortWish } from './port-leases.ts';

export interface TunnelRequest {
  readonly name: string;
  readonly protocol: string;
  /** This port or none. */
  readonly remotePort?: number | undefined;
  /** This port when it is free. */
  readonly preferredPort?: number | undefined;
}

export interface AdmissionFacts {
  /** Tunnels the session has, those that are held for it included. */
  readonly tunnelCount: number;
  readonly tunnelLimit: number;
  readonly protocols: readonly string[];
  readonly ports: { readonly from: number; readonly to: number };
  /** The port of the same tunnel before: a return, which never counts against the limit. */
  readonly heldPort: number | null;
}

export type Admission =
  | { readonly kind: 'admitted'; readonly wish: PortWish }
  | { readonly kind: 'refused'; readonly fault: Fault };

export const TUNNEL_NAME_MAX_CHARACTERS = 100;

export const decideAdmission = (request: TunnelRequest, facts: AdmissionFacts): Admission => {
  const nameProblem = problemOfName(request.name);
  if (nameProblem !== null) {
    return refuse(new Fault('TUNNEL_NAME_INVALID', { name: shown(request.name), reason: nameProblem }));
  }
  if (!facts.protocols.includes(request.protocol)) {
    const supported = facts.protocols.join(', ');
    return refuse(new Fault('TUNNEL_PROTOCOL_UNSUPPORTED', { protocol: request.protocol, supported }));
  }
  const { remotePort, preferredPort } = request;
  const { from, to } = facts.ports;
  if (remotePort !== undefined && (remotePort < from || remotePort > to)) {
    return refuse(new Fault('TUNNEL_PORT_OUT_OF_RANGE', { port: remotePort, from, to }));
  }
  if (facts.heldPort === null && facts.tunnelCount >= facts.tunnelLimit) {
    return refuse(new Fault('TUNNEL_LIMIT', { limit: facts.tunnelLimit }));
  }
  if (remotePort !== undefined) return { kind: 'admitted', wish: { kind: 'exactly', port: remotePort } };
  const rather = facts.heldPort ?? preferredPort;
  return { kind: 'admitted', wish: rather === undefined ? { kind: 'any' } : { kind: 'rather', port: rather } };
};

/** null: a valid name. */
export const problemOfName = (name: string): string | null => {
  const characters = [...name].length;
  if (characters === 0) return 'it is empty';
  if (characters > TUNNEL_NAME_MAX_CHARACTERS) return `it is longer than ${TUNNEL_NAME_MAX_CHARACTERS} characters`;
  if (UNPRINTABLE.test(name)) return 'it has characters that cannot be printed';
  return null;
};

/** Control, format, surrogate, private and unassigned characters, line and paragraph separators. */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/u;

/** A refused name goes into a line for people: no character of it may break that line. */
const shown = (name: string): string =>
  [...name]
    .slice(0, 40)
    .join('')
    .replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '?');

const refuse = (fault: Fault): Admission => ({ kind: 'refused', fault });

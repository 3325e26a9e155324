// What a tunnel says about its group: what of it can work, and what the edge is told. The key itself stays here.
import { isGroupProtocol, refuseGroupFields } from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import type { ControlMessageInput, TunnelProtocol } from '@tunnel/protocol';
import { Secret, sha256Hex } from '@tunnel/runtime';
import { checkHealthCheck, type HealthCheck, wireHealthCheck } from './health-check.ts';

export interface GroupSpec {
  /** The pool to join; with a key only. HTTP: also its subdomain, unless there is one. */
  readonly group?: string;
  /** What all members of the group share. Only its SHA-256 leaves the process. */
  readonly groupKey?: Secret | string;
  readonly healthCheck?: HealthCheck;
}

type Registration = Extract<ControlMessageInput, { type: 'RegisterTunnel' }>;

/** The same, with a key that no log, error or inspection shows. */
export const concealKey = <S extends GroupSpec>(spec: S): S =>
  typeof spec.groupKey === 'string' ? { ...spec, groupKey: new Secret(spec.groupKey) } : spec;

/** Throws a Fault. The edge would refuse the same, and not as soon. */
export const checkGroupSpec = (spec: GroupSpec & { readonly protocol: TunnelProtocol }): void => {
  const { group, groupKey, healthCheck, protocol } = spec;
  if ((group !== undefined || groupKey !== undefined) && !isGroupProtocol(protocol)) {
    throw new Fault('CLIENT_USAGE', { reason: `a ${protocol} tunnel cannot be in a group: http, https and tcp can` });
  }
  if (groupKey !== undefined && textOf(groupKey) === '') {
    throw new Fault('CLIENT_USAGE', { reason: 'the group key is empty' });
  }
  const groupKeyHash = groupKey === undefined ? undefined : hashOf(groupKey);
  const oddity = refuseGroupFields({ group, groupKeyHash, healthCheck });
  if (oddity !== null) throw new Fault('CLIENT_USAGE', { reason: oddity.message });
  if (healthCheck !== undefined) checkHealthCheck(healthCheck);
};

export const groupWishes = ({ group, groupKey, healthCheck }: GroupSpec): Partial<Registration> => ({
  ...(group === undefined ? {} : { group }),
  ...(groupKey === undefined ? {} : { group_key_hash: hashOf(groupKey) }),
  ...(healthCheck === undefined ? {} : { health_check: wireHealthCheck(healthCheck) }),
});

const hashOf = (key: Secret | string): string => sha256Hex(textOf(key));

const textOf = (key: Secret | string): string => (typeof key === 'string' ? key : key.reveal());

// The offer of a p2p tunnel to its peers: name, hash of the secret, kind of service, and the API keys that can connect.

import { Fault } from '@tunnel/errors';
import { RULE_LIMITS } from '@tunnel/rules/limits';
import type { Owner, PeerEndpoint } from '@tunnel/rules/tunnels';
import { parseP2pName } from './names.ts';

export type P2pService = 'tcp' | 'udp';

/** API keys that can connect: keys of the publisher's account, or every valid key. In both cases the peer needs the secret. */
export type P2pAudience = 'account' | 'anyone';

export interface P2pOffer {
  /** Name of the p2p tunnel, in lower case. */
  readonly name: string;
  /** SHA-256 of the p2p secret, as 64 lower-case hex digits. */
  readonly secretHash: string;
  readonly service: P2pService;
  readonly allow: P2pAudience;
}

/** The p2p fields in the registration of a tunnel. */
export interface P2pOfferFields {
  readonly p2p_name?: string | undefined;
  readonly p2p_secret_hash?: string | undefined;
  readonly p2p_service?: P2pService | undefined;
  readonly p2p_allow?: P2pAudience | undefined;
}

const SECRET_HASH = /^[0-9a-f]{64}$/;

export const parseP2pOffer = (fields: P2pOfferFields): P2pOffer | Fault => {
  const {
    p2p_name = '',
    p2p_secret_hash: secretHash = '',
    p2p_service: service = 'tcp',
    p2p_allow: allow = 'account',
  } = fields;
  const name = parseP2pName(p2p_name);
  if (name instanceof Fault) return name;
  if (!SECRET_HASH.test(secretHash)) {
    return new Fault('TUNNEL_P2P_FIELDS_INVALID', { reason: 'p2p_secret_hash must be 64 lower-case hex digits' });
  }
  return { name, secretHash, service, allow };
};

/**
 * Returns the key under which the edge registers a p2p name. A name open to all accounts is unique on the edge; every other name is
 * unique in its account. The operator's account id is empty.
 */
export const peerEndpointOf = ({ name, allow }: Pick<P2pOffer, 'name' | 'allow'>, owner: Owner): PeerEndpoint => ({
  kind: 'peer-name',
  name,
  account: allow === 'anyone' ? null : accountIdOf(owner),
});

const accountIdOf = (owner: Owner): string => (owner.kind === 'operator' ? '' : owner.accountId);

/**
 * Checks the length of a p2p secret. Returns null for a valid length. Short secrets are rejected, because the edge has the SHA-256 and
 * could guess a short secret.
 */
export const refuseP2pSecret = (bytes: number): Fault | null => {
  const { P2P_SECRET_MIN_BYTES: least, P2P_SECRET_MAX_BYTES: most } = RULE_LIMITS;
  if (bytes < least) return new Fault('CLIENT_P2P_SECRET_SHORT', { limit: least });
  return bytes > most ? new Fault('CLIENT_P2P_SECRET_LONG', { limit: most }) : null;
};

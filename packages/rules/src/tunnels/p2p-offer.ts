// What a p2p tunnel offers its peers: a name, a secret that the edge knows the hash of alone, a kind of service, and to whom.

import { Fault } from '@tunnel/errors';
import { RULE_LIMITS } from '../limits.ts';
import { foldSubdomain, problemOfPlainName, shownText } from '../names/names.ts';
import type { Owner } from './owner.ts';
import type { PeerEndpoint } from './public-endpoint.ts';

export type P2pService = 'tcp' | 'udp';

/** Keys of the publisher's account, or every valid key. The secret is asked for in any case. */
export type P2pAudience = 'account' | 'anyone';

export interface P2pOffer {
  /** In lower case. */
  readonly name: string;
  /** Of the secret's SHA-256, 64 lower-case hex digits. */
  readonly secretHash: string;
  readonly service: P2pService;
  readonly allow: P2pAudience;
}

/** As they stand in a registration. */
export interface P2pOfferFields {
  readonly p2pName?: string | undefined;
  readonly p2pSecretHash?: string | undefined;
  readonly p2pService?: P2pService | undefined;
  readonly p2pAllow?: P2pAudience | undefined;
}

const SECRET_HASH = /^[0-9a-f]{64}$/;

/** The name in lower case, or why it cannot be one: the grammar and the reserved words are those of subdomains. */
export const p2pNameOf = (name: string): string | Fault => {
  const reason = problemOfPlainName(name);
  if (reason === null) return foldSubdomain(name);
  return new Fault('TUNNEL_P2P_NAME_INVALID', { name: shownText(name), reason });
};

export const p2pOfferOf = ({
  p2pName = '',
  p2pSecretHash = '',
  p2pService = 'tcp',
  p2pAllow = 'account',
}: P2pOfferFields): P2pOffer | Fault => {
  const name = p2pNameOf(p2pName);
  if (name instanceof Fault) return name;
  if (!SECRET_HASH.test(p2pSecretHash)) {
    return new Fault('TUNNEL_P2P_FIELDS_INVALID', { reason: 'p2p_secret_hash must be 64 lower-case hex digits' });
  }
  return { name, secretHash: p2pSecretHash, service: p2pService, allow: p2pAllow };
};

/** A name that keys of every account can connect to is one for all accounts; every other name is its account's. The operator has the empty account id. */
export const peerEndpointOf = ({ name, allow }: Pick<P2pOffer, 'name' | 'allow'>, owner: Owner): PeerEndpoint => ({
  kind: 'peer-name',
  name,
  account: allow === 'anyone' ? null : accountIdOf(owner),
});

const accountIdOf = (owner: Owner): string => (owner.kind === 'operator' ? '' : owner.accountId);

/** null: it can be one. The edge holds its SHA-256, and could find a short one by trying. */
export const refuseP2pSecret = (bytes: number): Fault | null => {
  const { P2P_SECRET_MIN_BYTES: least, P2P_SECRET_MAX_BYTES: most } = RULE_LIMITS;
  if (bytes < least) return new Fault('CLIENT_P2P_SECRET_SHORT', { limit: least });
  return bytes > most ? new Fault('CLIENT_P2P_SECRET_LONG', { limit: most }) : null;
};

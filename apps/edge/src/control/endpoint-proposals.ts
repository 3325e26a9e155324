// The endpoints that one registration may come to have, in the order in which they are tried. What was asked for is tried alone; a name of the
// edge's own choice is another one when it turns out to be somebody's. Each is asked the backend for before it is leased: whose a name is
// comes before who serves it.
import { createHash } from 'node:crypto';
import type { Fault } from '@tunnel/errors';
import type { P2pOffer } from '@tunnel/tunnel-spec';
import type { RequestedEndpoint } from '../backend/names/admission-request.ts';
import type { WantedName } from '../routing/name-leases.rules.ts';
import type { WantedEndpoint, WantedGroup, WantedLease } from '../routing/registration.rules.ts';

export interface Proposal {
  readonly wanted: WantedEndpoint;
  /** null: nobody has to be asked whose it is. */
  readonly asked: RequestedEndpoint | null;
  /** An own domain that must be the account's; null: none, or a living group of it lets this member in by its key. */
  readonly domain: string | null;
  /** It was let in as a member of a group that lives. */
  readonly joinsGroup?: boolean;
  /** After this refusal the next one may do better. */
  readonly isOneOfMany: (refusal: Fault) => boolean;
}

export interface ProposalSources {
  /** A name that cannot be guessed. */
  readonly propose: () => string;
  /** A living group takes this member; asked anew with each proposal. Throws what it is refused with. */
  readonly isJoining: (wanted: WantedGroup) => boolean;
}

/** Two names of the generator are never the same by chance; a few tries are more than enough. */
const NAME_TRIES = 5;
/** A group may end while its next member is on the way: that one begins it anew, and is asked for as who begins it. */
const GROUP_TRIES = 3;

const never = (): boolean => false;

export function* proposalsFor(wanted: WantedEndpoint, sources: ProposalSources): Generator<Proposal> {
  if (wanted.kind === 'group') {
    for (let tries = 0; tries < GROUP_TRIES; tries += 1) yield groupProposal(wanted.wanted, sources);
  } else if (wanted.kind === 'peer-name') {
    yield { wanted, asked: peerNameAsked(wanted.offer), domain: null, isOneOfMany: never };
  } else if (wanted.kind === 'domain') {
    yield { wanted, asked: null, domain: wanted.wanted.name, isOneOfMany: never };
  } else if (wanted.kind === 'port') {
    yield { wanted, asked: portAsked(wanted, null, false), domain: null, isOneOfMany: never };
  } else yield* nameProposals(wanted.wanted, sources);
}

function* nameProposals(wanted: WantedName, { propose }: ProposalSources): Generator<Proposal> {
  if (wanted.kind === 'exact') {
    yield nameProposal(wanted.name, 'asked');
    return;
  }
  if (wanted.kind === 'preferred') yield nameProposal(wanted.name, 'preferred');
  for (let tries = 0; tries < NAME_TRIES; tries += 1) yield nameProposal(propose(), 'assigned');
}

const nameProposal = (name: string, choice: RequestedEndpoint['choice']): Proposal => ({
  wanted: { kind: 'name', wanted: { kind: 'exact', name } },
  asked: { kind: 'subdomain', label: name, choice, groupKeyHash: null, joinsGroup: false },
  domain: null,
  isOneOfMany: ({ code }) =>
    choice !== 'asked' && (code === 'TUNNEL_SUBDOMAIN_IN_USE' || code === 'TUNNEL_SUBDOMAIN_INVALID'),
});

const groupProposal = (wanted: WantedGroup, { isJoining }: ProposalSources): Proposal => {
  const { endpoint, keyHash } = wanted;
  const joinsGroup = isJoining(wanted);
  const proposal = { wanted: { kind: 'group', wanted }, joinsGroup, domain: null, isOneOfMany: never } as const;
  if (endpoint.kind === 'port') return { ...proposal, asked: portAsked(endpoint, keyHash, joinsGroup) };
  if (endpoint.kind === 'domain') return { ...proposal, asked: null, domain: joinsGroup ? null : endpoint.name };
  const groupKeyHash = keyOfName(keyHash, endpoint.name);
  const asked = { kind: 'subdomain', label: endpoint.name, choice: 'asked', groupKeyHash, joinsGroup } as const;
  return { ...proposal, asked };
};

/** A name remembers one key for all that is below it: bound to its label, the key of a group at `a.shop` opens neither `shop` nor `b.shop`. */
const keyOfName = (keyHash: string, label: string): string =>
  label.includes('.') ? createHash('sha256').update(`${label} ${keyHash}`).digest('hex') : keyHash;

/** A name that keys of every account can connect to is held for its account as a subdomain is. Every other one is its account's anyway. */
const peerNameAsked = ({ name, allow }: P2pOffer): RequestedEndpoint | null =>
  allow === 'anyone' ? { kind: 'p2p', label: name, choice: 'asked', groupKeyHash: null, joinsGroup: false } : null;

/** Of a port that is only preferred nothing is asked: the leases know which are reserved, and take another. */
const portAsked = (
  { transport, wanted }: Extract<WantedLease, { kind: 'port' }>,
  groupKeyHash: string | null,
  joinsGroup: boolean,
): RequestedEndpoint => ({
  kind: transport,
  label: wanted.kind === 'exact' ? String(wanted.port) : null,
  choice: wanted.kind === 'exact' ? 'asked' : 'assigned',
  groupKeyHash,
  joinsGroup,
});

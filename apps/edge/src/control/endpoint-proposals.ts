// Endpoints to try for a registration, in order. A requested endpoint is the only proposal; a generated name is replaced by another if
// taken. The backend confirms the owner of each proposal before the endpoint is leased.
import { createHash } from 'node:crypto';
import type { Fault } from '@tunnel/errors';
import type { P2pOffer } from '@tunnel/tunnel-spec';
import type { RequestedEndpoint } from '../backend/names/admission-request.ts';
import type { WantedName } from '../routing/name-leases.rules.ts';
import type { WantedEndpoint, WantedGroup, WantedLease } from '../routing/registration.rules.ts';

export interface Proposal {
  readonly wanted: WantedEndpoint;
  /** Endpoint for which the backend must check the owner, or null if no check is needed. */
  readonly asked: RequestedEndpoint | null;
  /**
   * Custom domain that must belong to the account. Null if there is no domain, or if an open group on the domain admits the member by its
   * key.
   */
  readonly domain: string | null;
  /** True if an open group has admitted the tunnel as a member. */
  readonly joinsGroup?: boolean;
  /** Returns true if the next proposed endpoint may succeed after this refusal. */
  readonly isOneOfMany: (refusal: Fault) => boolean;
}

export interface ProposalSources {
  /** Generates a random, unguessable name for a tunnel. */
  readonly propose: () => string;
  /** Returns whether an open group admits this member. Checked for each proposal. Throws the fault if the group rejects the member. */
  readonly isJoining: (wanted: WantedGroup) => boolean;
}

/** Attempts to generate a free name. Collisions are practically impossible, so a few attempts are enough. */
const NAME_TRIES = 5;
/**
 * Attempts to join a group. The group can end while its next member registers; the member then starts the group, and its request to the
 * backend changes accordingly.
 */
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

/**
 * Derives the key hash for a nested name. A reserved name stores only one key for all names below it; including the label ensures that the
 * key of a group at `a.shop` is not valid for `shop` or `b.shop`.
 */
const keyOfName = (keyHash: string, label: string): string =>
  label.includes('.') ? createHash('sha256').update(`${label} ${keyHash}`).digest('hex') : keyHash;

/**
 * Returns the backend request for a p2p name, or null. A name open to keys of every account is reserved for its account like a subdomain.
 * Any other p2p name is private to its account.
 */
const peerNameAsked = ({ name, allow }: P2pOffer): RequestedEndpoint | null =>
  allow === 'anyone' ? { kind: 'p2p', label: name, choice: 'asked', groupKeyHash: null, joinsGroup: false } : null;

/**
 * Returns the backend request for a port. A merely preferred port is not requested: the leases know the reserved ports and choose another.
 */
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

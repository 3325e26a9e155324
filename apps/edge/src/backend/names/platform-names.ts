// Ownership of names on an edge with a platform. The platform decides; while the platform is unreachable, the edge decides by its last
// known state.
import { join } from 'node:path';
import type { EdgeChange, TunnelQuestion } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { owningLabel } from '@tunnel/rules/names';
import { type Owner } from '@tunnel/rules/tunnels';
import type { Clock, Logger } from '@tunnel/runtime';
import { LinkFailure, type PlatformLink } from '../platform-link.ts';
import type { AdmissionRequest, RequestedEndpoint } from './admission-request.ts';
import { PlatformReservedNames } from './platform-reserved-names.ts';
import { isHeldByUse, isReservedKind, type ReservedNames } from './reserved-names.ts';
import { UsedNames } from './used-names.ts';
import type { DomainKeepers } from './verified-domains.ts';

/** Maximum wait for the change event about a custom domain after the platform has admitted a tunnel on the domain. */
const DOMAIN_HEARD_MS = 2000;

export interface PlatformNamesOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly link: Pick<PlatformLink, 'names' | 'isNameFree'>;
  readonly folder: string;
}

const RESERVED_FILE = 'edge-reserved-names.jsonl';
const USED_FILE = 'edge-used-names.jsonl';

export class PlatformNames {
  readonly #link: PlatformNamesOptions['link'];
  readonly #known: PlatformReservedNames;
  readonly #used: UsedNames;
  readonly #clock: Clock;
  /** Admission requests of admitted tunnels, until the tunnels are closed. */
  readonly #admitted = new Map<string, { readonly request: AdmissionRequest; isOpen: boolean }>();
  readonly #onDomains = new Set<(keepers: DomainKeepers) => void>();

  constructor(options: PlatformNamesOptions) {
    const { folder, link, clock } = options;
    this.#link = link;
    this.#clock = clock;
    this.#known = new PlatformReservedNames({
      ...options,
      path: join(folder, RESERVED_FILE),
      onDomains: (keepers) => {
        for (const listener of [...this.#onDomains]) listener(keepers);
      },
    });
    this.#used = new UsedNames({ ...options, path: join(folder, USED_FILE) });
  }

  get reserved(): ReservedNames {
    return this.#known;
  }

  // ---- whose a name is ----

  /**
   * Decides about a tunnel of the operator. Such tunnels are not counted, but cannot take names that belong to an account. Returns null
   * if admitted. `introduced` throws while the platform is unreachable.
   */
  async refusalForOperator(asked: AdmissionRequest, introduced: () => Promise<void>): Promise<Fault | null> {
    const { owner, endpoint, domain } = asked;
    // The edge knows all domains of accounts, so no request to the platform is needed.
    if (domain !== null) return this.#known.domains.refusalFor(domain, owner);
    if (endpoint === null || endpoint.label === null || endpoint.joinsGroup) return null;
    // A name that the edge chose at random belongs to no account, so no check is needed.
    if (endpoint.choice === 'assigned') return null;
    const { kind, label, groupKeyHash } = endpoint;
    try {
      await introduced();
      const isFree = await this.#link.isNameFree({ kind, label, group_key_hash: groupKeyHash });
      return isFree ? null : refusalOf(endpoint);
    } catch (error) {
      // An older platform rejects the unknown request. On such a platform, names have no owners.
      return error instanceof LinkFailure && error.kind === 'refused' ? null : this.refusalWhileAway(asked);
    }
  }

  /**
   * Decides while the platform is unreachable, by the known reservations, verified domains and recently used names. Returns null if
   * admitted.
   */
  refusalWhileAway({ endpoint: asked, owner, domain }: AdmissionRequest): Fault | null {
    if (domain !== null) return this.#domainWhileAway(domain, owner);
    if (asked === null || asked.label === null || asked.joinsGroup) return null;
    const { kind, label, choice, groupKeyHash } = asked;
    const reserved = isReservedKind(kind)
      ? this.#known.get(kind, kind === 'subdomain' ? owningLabel(label) : label)
      : undefined;
    if (reserved !== undefined) {
      const isOwn = owner.kind === 'account' && reserved.accountId === owner.accountId;
      return isOwn || (groupKeyHash !== null && reserved.groupKeyHash === groupKeyHash) ? null : refusalOf(asked);
    }
    if (!isHeldByUse(kind) || choice === 'assigned') return null;
    if (this.#used.isKnownTo(usedName(kind, label), owner, groupKeyHash)) return null;
    return choice === 'asked' ? new Fault('NAMES_AWAY') : refusalOf(asked);
  }

  /** Decides about a custom domain. A domain without a known owner may have been verified a moment ago, so the fault is retryable. */
  #domainWhileAway(domain: string, owner: Owner): Fault | null {
    const refusal = this.#known.domains.refusalFor(domain, owner);
    return refusal !== null && this.#known.accountOfDomain(domain) === null ? new Fault('NAMES_AWAY') : refusal;
  }

  /**
   * Waits for the change event about a custom domain after the platform has admitted a tunnel. Resolves to true if the account owns the
   * domain. No event arrives from an older platform, which ignores the domain and admits tunnels of any account.
   */
  hearsOfDomain(domain: string, accountId: string): Promise<boolean> {
    const isKnown = (): boolean => this.#known.domains.lastAccountOf(domain) === accountId;
    if (isKnown()) return Promise.resolve(true);
    return new Promise((resolve) => {
      const end = (isHeard: boolean): void => {
        timer.cancel();
        stop();
        resolve(isHeard);
      };
      const stop = this.onDomainsChanged(() => {
        if (isKnown()) end(true);
      });
      const timer = this.#clock.setTimeout(() => end(false), DOMAIN_HEARD_MS);
    });
  }

  onDomainsChanged(listener: (keepers: DomainKeepers) => void): () => void {
    this.#onDomains.add(listener);
    return () => this.#onDomains.delete(listener);
  }

  // ---- what happens ----

  admitted(request: AdmissionRequest): void {
    const { tunnelId, endpoint, domain } = request;
    if (endpoint !== null || domain !== null) this.#admitted.set(tunnelId, { request, isOpen: false });
  }

  /**
   * Marks a tunnel as open. Returns its admission request, which is reported in case the platform was unreachable at admission. Returns
   * null if the tunnel has no public endpoint.
   */
  opened(tunnelId: string): AdmissionRequest | null {
    const tunnel = this.#admitted.get(tunnelId);
    if (tunnel === undefined) return null;
    tunnel.isOpen = true;
    this.#use(tunnel.request);
    return tunnel.request;
  }

  /** Removes an admitted tunnel that was not opened. Such a tunnel is never opened later. */
  admissionEnded(tunnelId: string): void {
    if (this.#admitted.get(tunnelId)?.isOpen === false) this.#admitted.delete(tunnelId);
  }

  closed(tunnelId: string): void {
    const tunnel = this.#admitted.get(tunnelId);
    if (tunnel === undefined) return;
    this.#admitted.delete(tunnelId);
    this.#use(tunnel.request);
  }

  #use({ owner, endpoint }: AdmissionRequest): void {
    if (endpoint === null) return;
    const { kind, label, groupKeyHash, joinsGroup } = endpoint;
    if (isHeldByUse(kind) && label !== null && !joinsGroup) {
      this.#used.used(usedName(kind, label), owner, groupKeyHash);
    }
  }

  changed(change: Extract<EdgeChange, { kind: 'name-changed' | 'domain-changed' }>): void {
    this.#known.changed(change);
  }

  /** Called after each response of the platform. `isForgetful`: the edge has missed changes. */
  platformHeard(isForgetful: boolean): void {
    if (isForgetful) this.#known.takeAnew();
    else this.#known.takeOnce();
  }

  /** Called when the platform is reachable again, possibly with a newer version. */
  platformBack(): void {
    this.#known.askAgain();
  }

  // ---- life ----

  async start(): Promise<void> {
    await Promise.all([this.#known.start(), this.#used.start()]);
  }

  async stop(): Promise<void> {
    await Promise.all([this.#known.stop(), this.#used.stop()]);
  }
}

/** Key of a used name. P2p names have a prefix, because a p2p name and a subdomain can be the same word. No subdomain contains a slash. */
const usedName = (kind: 'subdomain' | 'p2p', label: string): string => (kind === 'p2p' ? `p2p/${label}` : label);

/** Converts an admission request to the fields of a platform request. */
export const endpointFields = (asked: AdmissionRequest | null): Pick<TunnelQuestion, 'endpoint' | 'domain'> => ({
  ...(asked?.endpoint == null ? {} : { endpoint: linkEndpoint(asked.endpoint) }),
  ...(asked?.domain == null ? {} : { domain: asked.domain }),
});

const linkEndpoint = (asked: RequestedEndpoint): NonNullable<TunnelQuestion['endpoint']> => ({
  kind: asked.kind,
  label: asked.label,
  asked: asked.choice === 'asked',
  group_key_hash: asked.groupKeyHash,
  joins_group: asked.joinsGroup,
});

/**
 * Returns the fault for a name owned by another account. The texts are defined by the specification; the fault for a group does not
 * reveal the owner.
 */
export const refusalOf = ({ kind, label, groupKeyHash }: RequestedEndpoint): Fault => {
  if (groupKeyHash !== null) return new Fault('GROUP_KEY_MISMATCH');
  if (kind === 'p2p') return new Fault('TUNNEL_P2P_NAME_IN_USE', { name: label ?? '' });
  return kind === 'subdomain'
    ? new Fault('TUNNEL_SUBDOMAIN_IN_USE', { subdomain: label ?? '' })
    : new Fault('TUNNEL_PORT_IN_USE', { port: label ?? '' });
};

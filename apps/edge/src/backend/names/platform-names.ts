// Whose names are, as an edge with a platform knows it: what the platform says of it, and what is let in by what is known while nobody answers.
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

/** for the change that tells of an own domain which the platform has just let a tunnel in at */
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
  /** Of tunnels that were admitted and not told to be closed yet. */
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

  /** The operator's tunnels are not counted, and take nothing that an account has. null: it may be had. `introduced` throws while the platform is away. */
  async refusalForOperator(asked: AdmissionRequest, introduced: () => Promise<void>): Promise<Fault | null> {
    const { owner, endpoint, domain } = asked;
    // The edge is told of every one that an account has: there is nobody to ask.
    if (domain !== null) return this.#known.domains.refusalFor(domain, owner);
    if (endpoint === null || endpoint.label === null || endpoint.joinsGroup) return null;
    // What the edge chose by chance is nobody's, and needs nobody to say so.
    if (endpoint.choice === 'assigned') return null;
    const { kind, label, groupKeyHash } = endpoint;
    try {
      await introduced();
      const isFree = await this.#link.isNameFree({ kind, label, group_key_hash: groupKeyHash });
      return isFree ? null : refusalOf(endpoint);
    } catch (error) {
      // A platform of before knows no such call: there nothing is anybody's.
      return error instanceof LinkFailure && error.kind === 'refused' ? null : this.refusalWhileAway(asked);
    }
  }

  /** By what was last known: what is reserved or verified, and what was open here. */
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

  /** One that nobody had may have been verified a moment ago. */
  #domainWhileAway(domain: string, owner: Owner): Fault | null {
    const refusal = this.#known.domains.refusalFor(domain, owner);
    return refusal !== null && this.#known.accountOfDomain(domain) === null ? new Fault('NAMES_AWAY') : refusal;
  }

  /**
   * The platform has let a tunnel in at this domain: the change that says whose it is comes, or has come. It does not from a platform of before, which
   * reads past the domain and lets in everybody.
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

  /** What was asked for: a platform that was away then is told of it. null: it has no public endpoint. */
  opened(tunnelId: string): AdmissionRequest | null {
    const tunnel = this.#admitted.get(tunnelId);
    if (tunnel === undefined) return null;
    tunnel.isOpen = true;
    this.#use(tunnel.request);
    return tunnel.request;
  }

  /** One that was not opened by now never will be. */
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

  /** Each sign of life of the platform; `isForgetful`: changes were missed. */
  platformHeard(isForgetful: boolean): void {
    if (isForgetful) this.#known.takeAnew();
    else this.#known.takeOnce();
  }

  /** It had been away, and may be another version now. */
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

/** A p2p name is another name than the same word as a subdomain. No subdomain contains a slash. */
const usedName = (kind: 'subdomain' | 'p2p', label: string): string => (kind === 'p2p' ? `p2p/${label}` : label);

/** As the link has it. */
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

/** In the words of the specification; what a group is refused with tells nothing of who is there. */
export const refusalOf = ({ kind, label, groupKeyHash }: RequestedEndpoint): Fault => {
  if (groupKeyHash !== null) return new Fault('GROUP_KEY_MISMATCH');
  if (kind === 'p2p') return new Fault('TUNNEL_P2P_NAME_IN_USE', { name: label ?? '' });
  return kind === 'subdomain'
    ? new Fault('TUNNEL_SUBDOMAIN_IN_USE', { subdomain: label ?? '' })
    : new Fault('TUNNEL_PORT_IN_USE', { port: label ?? '' });
};

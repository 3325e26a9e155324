// Whose names are, as an edge with a platform knows it: what the platform says of it, and what is let in by what is known while nobody answers.
import { join } from 'node:path';
import type { EdgeChange, TunnelQuestion } from '@tunnel/contract';
import { type Owner, owningLabel } from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import type { Clock, Logger } from '@tunnel/runtime';
import { LinkFailure, type PlatformLink } from '../platform-link.ts';
import type { EndpointAsked, TunnelRequest } from './asked-endpoint.ts';
import { PlatformReservedNames } from './platform-reserved-names.ts';
import type { ReservedNames } from './reserved-names.ts';
import { UsedNames } from './used-names.ts';

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
  /** Of tunnels that were admitted and not told to be closed yet. */
  readonly #admitted = new Map<string, { readonly owner: Owner; readonly asked: EndpointAsked; isOpen: boolean }>();

  constructor(options: PlatformNamesOptions) {
    const { folder, link } = options;
    this.#link = link;
    this.#known = new PlatformReservedNames({ ...options, path: join(folder, RESERVED_FILE) });
    this.#used = new UsedNames({ ...options, path: join(folder, USED_FILE) });
  }

  get reserved(): ReservedNames {
    return this.#known;
  }

  // ---- whose a name is ----

  /** The operator's tunnels are not counted, and take nothing that an account has. null: it may be had. `introduced` throws while the platform is away. */
  async refusalForOperator({ owner, endpoint }: TunnelRequest, introduced: () => Promise<void>): Promise<Fault | null> {
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
      return error instanceof LinkFailure && error.kind === 'refused' ? null : this.refusalWhileAway(endpoint, owner);
    }
  }

  /** By what was last known: what is reserved, and what was open here. */
  refusalWhileAway(asked: EndpointAsked | null, owner: Owner): Fault | null {
    if (asked === null || asked.label === null || asked.joinsGroup) return null;
    const { kind, label, choice, groupKeyHash } = asked;
    const reserved = this.#known.get(kind, kind === 'subdomain' ? owningLabel(label) : label);
    if (reserved !== undefined) {
      const isOwn = owner.kind === 'account' && reserved.accountId === owner.accountId;
      return isOwn || (groupKeyHash !== null && reserved.groupKeyHash === groupKeyHash) ? null : refusalOf(asked);
    }
    // Ports are reserved or nobody's.
    if (kind !== 'subdomain' || choice === 'assigned') return null;
    if (this.#used.isKnownTo(label, owner, groupKeyHash)) return null;
    return choice === 'asked' ? new Fault('NAMES_AWAY') : refusalOf(asked);
  }

  // ---- what happens ----

  admitted({ tunnelId, owner, endpoint }: TunnelRequest): void {
    if (endpoint !== null) this.#admitted.set(tunnelId, { owner, asked: endpoint, isOpen: false });
  }

  /** What was asked for: a platform that was away then is told of it. null: it has no public endpoint. */
  opened(tunnelId: string): EndpointAsked | null {
    const tunnel = this.#admitted.get(tunnelId);
    if (tunnel === undefined) return null;
    tunnel.isOpen = true;
    this.#use(tunnel);
    return tunnel.asked;
  }

  /** One that was not opened by now never will be. */
  admissionEnded(tunnelId: string): void {
    if (this.#admitted.get(tunnelId)?.isOpen === false) this.#admitted.delete(tunnelId);
  }

  closed(tunnelId: string): void {
    const tunnel = this.#admitted.get(tunnelId);
    if (tunnel === undefined) return;
    this.#admitted.delete(tunnelId);
    this.#use(tunnel);
  }

  #use({ owner, asked }: { readonly owner: Owner; readonly asked: EndpointAsked }): void {
    const { kind, label, groupKeyHash, joinsGroup } = asked;
    if (kind === 'subdomain' && label !== null && !joinsGroup) this.#used.used(label, owner, groupKeyHash);
  }

  changed(change: Extract<EdgeChange, { kind: 'name-changed' }>): void {
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

/** As the link has it. */
export const endpointField = (asked: EndpointAsked | null): Pick<TunnelQuestion, 'endpoint'> =>
  asked === null
    ? {}
    : {
        endpoint: {
          kind: asked.kind,
          label: asked.label,
          asked: asked.choice === 'asked',
          group_key_hash: asked.groupKeyHash,
          joins_group: asked.joinsGroup,
        },
      };

/** In the words of the specification; what a group is refused with tells nothing of who is there. */
export const refusalOf = ({ kind, label, groupKeyHash }: EndpointAsked): Fault => {
  if (groupKeyHash !== null) return new Fault('GROUP_KEY_MISMATCH');
  return kind === 'subdomain'
    ? new Fault('TUNNEL_SUBDOMAIN_IN_USE', { subdomain: label ?? '' })
    : new Fault('TUNNEL_PORT_IN_USE', { port: label ?? '' });
};

// Request for the admission of a tunnel, with the facts needed to decide about the ownership of its name.
import type { Owner } from '@tunnel/rules/tunnels';
import type { NameKind } from './reserved-names.ts';

/** Requested public name or port of a tunnel. */
export interface RequestedEndpoint {
  readonly kind: NameKind;
  /** Subdomain, p2p name, or port as text. Null for any free port, which needs no decision about ownership. */
  readonly label: string | null;
  /**
   * Strictness of the request. `asked`: only this name. `preferred`: this name if possible, otherwise another. `assigned`: the edge has
   * chosen the name.
   */
  readonly choice: 'asked' | 'preferred' | 'assigned';
  /** Hash of the group key. Null for a tunnel without a group. */
  readonly groupKeyHash: string | null;
  /**
   * True if an existing group has accepted the tunnel by the group key. The tunnel is counted, but the ownership of the name is not
   * checked.
   */
  readonly joinsGroup: boolean;
}

export interface AdmissionRequest {
  readonly tunnelId: string;
  readonly owner: Owner;
  /** Requested endpoint. Null for a custom domain, and for a p2p name to which only keys of the same account can connect. */
  readonly endpoint: RequestedEndpoint | null;
  /**
   * Custom domain that must be verified for the account. Null without a custom domain, and if an existing group on the domain has
   * accepted the tunnel by the group key.
   */
  readonly domain: string | null;
}

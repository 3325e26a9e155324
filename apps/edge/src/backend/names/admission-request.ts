// What a tunnel asks for, as far as it has to be known whose that is.
import type { Owner } from '@tunnel/rules/tunnels';
import type { NameKind } from './reserved-names.ts';

/** The name or port that a tunnel would be reached at. */
export interface RequestedEndpoint {
  readonly kind: NameKind;
  /** The subdomain, the p2p name, or the port as text; null: any port, of which nothing has to be decided. */
  readonly label: string | null;
  /** `asked`: this one or none. `preferred`: this one, or else another. `assigned`: the edge's own choice. */
  readonly choice: 'asked' | 'preferred' | 'assigned';
  /** Of a group; null: it stands alone. */
  readonly groupKeyHash: string | null;
  /** A living group let it in by its key: it is counted, and nothing is decided about the name. */
  readonly joinsGroup: boolean;
}

export interface AdmissionRequest {
  readonly tunnelId: string;
  readonly owner: Owner;
  /** null: an own domain, or a p2p name that only keys of its own account can connect to. */
  readonly endpoint: RequestedEndpoint | null;
  /** An own domain that has to be verified for its account; null: none, or a living group of it let the tunnel in by its key. */
  readonly domain: string | null;
}

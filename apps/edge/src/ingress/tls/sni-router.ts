// Selects the destination of a connection to the https port by its ClientHello. Decides only, without side effects.
import { type AcceptedConnection, ALPN_CHALLENGE, type ClientHello } from '@tunnel/http-shell';
import type { AcceptedSocket } from '@tunnel/mux';
import { ALPN_TUNNEL } from '@tunnel/protocol';
import type { Route } from '../../routing/registry.ts';
import type { CertificateStore, StoredCertificate } from './certificate-store.ts';
import type { ChallengeHandshakes } from './challenge-handshakes.ts';

/** Route of a passthrough tunnel. `away`: the tunnel's client is disconnected and expected back; visitors are rejected until then. */
export type PassedRoute = Route | 'away';

/** Tunnels with TLS passthrough: TLS ends at the local service, and the edge cannot decrypt the traffic. */
export interface Passthrough {
  /** Returns undefined if the host has no passthrough tunnel. `host` is in lower case, without a trailing dot. */
  routeFor(host: string): PassedRoute | undefined;
  /**
   * Takes over the connection. `hello` holds all bytes read so far, and the callee owns it. Starts reading or closes the connection before
   * returning.
   */
  accept(visitor: AcceptedSocket, accepted: AcceptedConnection, route: PassedRoute, hello: Buffer): void;
}

export type TlsDestination =
  | { readonly to: 'passthrough'; readonly route: PassedRoute }
  /** An ACME validation. `name` is null if no challenge for the name is possible on this edge. */
  | { readonly to: 'challenge'; readonly name: string | null }
  /** The TLS connection is terminated at the edge. */
  | { readonly to: 'clients' | 'visitors'; readonly certificate: StoredCertificate }
  /** No certificate matches the requested host name. */
  | { readonly to: 'nobody' };

export interface SniRouterOptions {
  readonly certificates: Pick<CertificateStore, 'find'>;
  readonly passthrough: Pick<Passthrough, 'routeFor'> | null;
  /** Knows which names can have ACME challenges. Null if the edge does not answer challenges. */
  readonly challenges: Pick<ChallengeHandshakes, 'isKnown'> | null;
  /** Whether clients can connect through the visitors' ports: `[server] control_on_public`. */
  readonly takesClients: boolean;
}

const TO_NO_CHALLENGE: TlsDestination = { to: 'challenge', name: null };
const TO_NOBODY: TlsDestination = { to: 'nobody' };

export class SniRouter {
  readonly #options: SniRouterOptions;

  constructor(options: SniRouterOptions) {
    this.#options = options;
  }

  destinationOf({ sni, alpn }: ClientHello): TlsDestination {
    const { certificates, passthrough, takesClients } = this.#options;
    // Passthrough comes first, because a service behind such a tunnel may have its own certificates validated by tls-alpn-01.
    const route = sni === null ? undefined : passthrough?.routeFor(sni);
    if (route !== undefined) return { to: 'passthrough', route };
    if (alpn.includes(ALPN_CHALLENGE)) return this.#challengeOf(sni);
    const certificate = certificates.find(sni);
    if (certificate === null) return TO_NOBODY;
    return { to: takesClients && alpn.includes(ALPN_TUNNEL) ? 'clients' : 'visitors', certificate };
  }

  #challengeOf(sni: string | null): TlsDestination {
    if (sni === null || this.#options.challenges?.isKnown(sni) !== true) return TO_NO_CHALLENGE;
    return { to: 'challenge', name: sni };
  }
}

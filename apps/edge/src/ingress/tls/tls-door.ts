// Where a visitor of the https port goes by its first message. Says; never does.
import { type AcceptedConnection, ALPN_CHALLENGE, type ClientHello } from '@tunnel/http-shell';
import type { AcceptedSocket } from '@tunnel/mux';
import { ALPN_TUNNEL } from '@tunnel/protocol';
import type { Route } from '../../routing/registry.ts';
import type { CertificateStore, StoredCertificate } from './certificate-store.ts';
import type { ChallengeHandshakes } from './challenge-handshakes.ts';

/** `away`: its client is expected back, and until then nobody is served there. */
export type PassedRoute = Route | 'away';

/** Tunnels whose TLS ends at their service: the edge passes it on and cannot read it. */
export interface Passthrough {
  /** undefined: the host is not theirs. `host`: small letters, no last dot. */
  routeFor(host: string): PassedRoute | undefined;
  /** `hello`: all that was read so far, for good. Reads the visitor before it returns, or ends it. */
  accept(visitor: AcceptedSocket, accepted: AcceptedConnection, route: PassedRoute, hello: Buffer): void;
}

export type TlsExit =
  | { readonly to: 'passthrough'; readonly route: PassedRoute }
  /** `name` null: none that this edge has a reason to know; nobody waits for it. */
  | { readonly to: 'challenge'; readonly name: string | null }
  /** TLS ends here. */
  | { readonly to: 'clients' | 'visitors'; readonly certificate: StoredCertificate }
  /** No certificate of ours is for it. */
  | { readonly to: 'nobody' };

export interface TlsDoorOptions {
  readonly certificates: Pick<CertificateStore, 'find'>;
  readonly passthrough: Pick<Passthrough, 'routeFor'> | null;
  /** null: no challenge is answered here. */
  readonly challenges: Pick<ChallengeHandshakes, 'isKnown'> | null;
  /** [server] control_on_public. */
  readonly takesClients: boolean;
}

const TO_NO_CHALLENGE: TlsExit = { to: 'challenge', name: null };
const TO_NOBODY: TlsExit = { to: 'nobody' };

export class TlsDoor {
  readonly #given: TlsDoorOptions;

  constructor(options: TlsDoorOptions) {
    this.#given = options;
  }

  exitOf({ sni, alpn }: ClientHello): TlsExit {
    const { certificates, passthrough, takesClients } = this.#given;
    // First of all: a service behind such a tunnel has its own certificates validated, too.
    const route = sni === null ? undefined : passthrough?.routeFor(sni);
    if (route !== undefined) return { to: 'passthrough', route };
    if (alpn.includes(ALPN_CHALLENGE)) return this.#challengeOf(sni);
    const certificate = certificates.find(sni);
    if (certificate === null) return TO_NOBODY;
    return { to: takesClients && alpn.includes(ALPN_TUNNEL) ? 'clients' : 'visitors', certificate };
  }

  #challengeOf(sni: string | null): TlsExit {
    if (sni === null || this.#given.challenges?.isKnown(sni) !== true) return TO_NO_CHALLENGE;
    return { to: 'challenge', name: sni };
  }
}

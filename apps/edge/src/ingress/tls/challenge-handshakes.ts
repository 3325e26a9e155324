// Answers ACME tls-alpn-01 challenges on the https port, with a certificate made for the challenge (RFC 8737).
import { createSecureContext, type SecureContext } from 'node:tls';
import type { ChallengeAnswer } from '@tunnel/certificates/acme';
import { secureOptionsOf } from '@tunnel/http-shell';
import { isOfDomain } from '@tunnel/rules/names';
import { Cache, type Clock } from '@tunnel/runtime';
import type { EdgeCertificates } from '../../backend/certificates/edge-certificates.ts';

/** Maximum ACME challenge certificates ready for handshakes. The oldest is evicted. */
const CHALLENGE_CONTEXTS_MAX = 100;

export interface ChallengeHandshakesOptions {
  /** Domain of the edge: `[server] domain`. */
  readonly domain: string;
  readonly certificates: Pick<EdgeCertificates, 'isWanted' | 'findChallenge'>;
  readonly clock: Clock;
}

interface ReadyChallenge {
  readonly token: string;
  readonly context: SecureContext;
}

export class ChallengeHandshakes {
  readonly #options: ChallengeHandshakesOptions;
  /** TLS contexts of prepared ACME challenges by name. */
  readonly #ready = new Cache<string, ReadyChallenge>({ max: CHALLENGE_CONTEXTS_MAX });
  /** Contexts being created, by token, so that concurrent validations share a single certificate. */
  readonly #making = new Map<string, Promise<SecureContext>>();

  constructor(options: ChallengeHandshakesOptions) {
    this.#options = options;
  }

  /** Reports whether a challenge for the name is possible. For other names nothing is looked up, created or stored. */
  isKnown(name: string): boolean {
    const { domain, certificates } = this.#options;
    return isOfDomain(name, domain) || certificates.isWanted(name);
  }

  /** Prepares the challenge certificate of a name. Resolves to false if no challenge is pending. Never rejects. */
  async prepare(name: string): Promise<boolean> {
    const { certificates } = this.#options;
    try {
      const answer = await certificates.findChallenge({ tlsName: name });
      if (answer?.type !== 'tls-alpn-01') return false;
      if (this.#ready.get(name)?.token === answer.token) return true;
      const { token } = answer;
      const making = this.#making.get(token) ?? this.#make(answer);
      this.#making.set(token, making);
      this.#ready.set(name, { token, context: await making.finally(() => this.#making.delete(token)) });
      return true;
    } catch {
      return false;
    }
  }

  async #make(answer: ChallengeAnswer): Promise<SecureContext> {
    const { challengeCertificate } = await import('@tunnel/certificates/acme');
    const { cert, key } = await challengeCertificate(answer, this.#options.clock.now());
    return createSecureContext(secureOptionsOf({ cert: Buffer.from(cert), key: Buffer.from(key) }));
  }

  contextOf(name: string): SecureContext | null {
    return this.#ready.get(name)?.context ?? null;
  }
}

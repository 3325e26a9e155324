// tls-alpn-01 at the https port: who may be asked for, and the certificate of one challenge, made for that handshake alone (RFC 8737).
import { createSecureContext, type SecureContext } from 'node:tls';
import type { ChallengeAnswer } from '@tunnel/certificates/acme';
import { secureOptionsOf } from '@tunnel/http-shell';
import { isOfDomain } from '@tunnel/rules/names';
import { Cache, type Clock } from '@tunnel/runtime';
import type { EdgeCertificates } from '../../backend/certificates/edge-certificates.ts';

/** certificates of challenges that are ready for handshakes; the oldest is forgotten */
const CHALLENGE_CONTEXTS_MAX = 100;

export interface ChallengeHandshakesOptions {
  /** [server] domain. */
  readonly domain: string;
  readonly certificates: Pick<EdgeCertificates, 'isWanted' | 'findChallenge'>;
  readonly clock: Clock;
}

interface ReadyChallenge {
  readonly token: string;
  readonly context: SecureContext;
}

export class ChallengeHandshakes {
  readonly #given: ChallengeHandshakesOptions;
  /** By name. */
  readonly #ready = new Cache<string, ReadyChallenge>({ max: CHALLENGE_CONTEXTS_MAX });
  /** By token: however many look at once, it is made for them once. */
  readonly #making = new Map<string, Promise<SecureContext>>();

  constructor(options: ChallengeHandshakesOptions) {
    this.#given = options;
  }

  /** Whether there is any reason to look: for other names nothing is asked, made or kept. */
  isKnown(name: string): boolean {
    const { domain, certificates } = this.#given;
    return isOfDomain(name, domain) || certificates.isWanted(name);
  }

  /** Whether contextOf() has it now; false: nobody waits for it. Never rejects. */
  async prepare(name: string): Promise<boolean> {
    const { certificates } = this.#given;
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
    const { cert, key } = await challengeCertificate(answer, this.#given.clock.now());
    return createSecureContext(secureOptionsOf({ cert: Buffer.from(cert), key: Buffer.from(key) }));
  }

  contextOf(name: string): SecureContext | null {
    return this.#ready.get(name)?.context ?? null;
  }
}

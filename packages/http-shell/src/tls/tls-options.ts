// How every server of ours speaks TLS, whichever port it has: the one source of versions, suites and tickets.
import { constants, hkdfSync } from 'node:crypto';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import type { Clock, Secret, Timer } from '@tunnel/runtime';

/** As PEM. */
export interface CertificatePair {
  readonly cert: Buffer;
  readonly key: Buffer;
}

/**
 * In the order of our liking: forward secret and authenticated, all of them. AES of 128 bits first: nobody breaks it either, and its ten rounds
 * cost a quarter less than the fourteen of 256, for each byte of every carrier and visitor.
 */
const SUITES = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
].join(':');

const GROUPS = 'X25519:P-256:P-384';
/** Safe from quantum computers, too. */
const HYBRID_GROUP = 'X25519MLKEM768';

/** OpenSSL before 3.5 does not know the hybrid group, and a list with an unknown name is refused as a whole. */
const knowsHybridGroup = (): boolean => {
  try {
    createSecureContext({ ecdhCurve: HYBRID_GROUP });
    return true;
  } catch {
    return false;
  }
};

/**
 * The terms of a TLS server without a certificate. The groups of the key agreement are named one by one, because Node also agrees on finite fields
 * unless told otherwise: a hello with a share of ffdhe8192 costs the sender nothing and the thread of the server 151 ms.
 */
export const TLS_TERMS: SecureContextOptions = {
  ecdhCurve: knowsHybridGroup() ? `${HYBRID_GROUP}:${GROUPS}` : GROUPS,
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.3',
  ciphers: SUITES,
  honorCipherOrder: true,
  // Peers that name ChaCha first have no instructions for AES: telephones, small boards. In TLS 1.2 no peer gets a second handshake on a connection.
  secureOptions: constants.SSL_OP_PRIORITIZE_CHACHA | constants.SSL_OP_NO_RENEGOTIATION,
};

/** Without tickets: only to see whether a pair works. */
export const secureOptionsOf = ({ cert, key }: CertificatePair): SecureContextOptions => ({ ...TLS_TERMS, cert, key });

/** A port whose sessions are taken up again there, and at no other. */
export type TicketScope = 'visitors' | 'clients' | 'rest' | 'platform';

const DAY_MS = 86_400_000;
const TICKET_KEY_BYTES = 48;

/**
 * Tickets of a day are sealed by the key of that day: all who know the secret agree without a word, and a ticket outlives changed certificates. Node
 * knows one key at a time, so who comes with a ticket of the day before shakes hands in full.
 */
export class TlsTerms {
  readonly #secret: Secret;
  readonly #clock: Clock;
  #day: number;
  #ticketKeys: Buffer;
  #looking: Timer | undefined;

  constructor(secret: Secret, clock: Clock) {
    this.#secret = secret;
    this.#clock = clock;
    this.#day = this.#today();
    this.#ticketKeys = deriveTicketKeys(secret, this.#day);
  }

  get ticketKeys(): Buffer {
    return this.#ticketKeys;
  }

  /** Whole, at a start and at each renewal: what setSecureContext is not told it forgets. `pair` null: certificates come by name. */
  optionsOf(pair: CertificatePair | null, scope: TicketScope): SecureContextOptions {
    return { ...TLS_TERMS, ...pair, ticketKeys: this.#ticketKeys, sessionIdContext: `tunnel-${scope}` };
  }

  /** `onNextDay`: contexts that were made before seal tickets that nobody takes tomorrow. */
  start(lookMs: number, onNextDay: () => void): void {
    this.#looking = this.#clock.setInterval(() => {
      const day = this.#today();
      if (day === this.#day) return;
      this.#day = day;
      this.#ticketKeys = deriveTicketKeys(this.#secret, day);
      onNextDay();
    }, lookMs);
  }

  stop(): void {
    this.#looking?.cancel();
  }

  #today(): number {
    return Math.floor(this.#clock.now() / DAY_MS);
  }
}

export const deriveTicketKeys = (secret: Secret, day: number): Buffer =>
  Buffer.from(hkdfSync('sha256', secret.reveal(), '', `tunnel tls tickets ${day}`, TICKET_KEY_BYTES));

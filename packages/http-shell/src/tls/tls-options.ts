// TLS options of all servers, for every port: the single source of versions, cipher suites and tickets.
import { constants, hkdfSync } from 'node:crypto';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import type { Clock, Secret, Timer } from '@tunnel/runtime';

/** Certificate and private key in PEM format. */
export interface CertificatePair {
  readonly cert: Buffer;
  readonly key: Buffer;
}

/**
 * Cipher suites in order of preference; all have forward secrecy and authenticated encryption. AES-128 comes first: it is not broken
 * either, and its ten rounds cost a quarter less than the fourteen rounds of AES-256, for every byte of every carrier and visitor.
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
/** TLS key agreement that is also safe from quantum computers. */
const HYBRID_GROUP = 'X25519MLKEM768';

/** Tests whether OpenSSL supports the hybrid group. OpenSSL before 3.5 does not, and rejects a whole list because of an unknown name. */
const knowsHybridGroup = (): boolean => {
  try {
    createSecureContext({ ecdhCurve: HYBRID_GROUP });
    return true;
  } catch {
    return false;
  }
};

/**
 * TLS options without a certificate. The groups for key agreement are listed explicitly, because Node.js would otherwise also accept
 * finite fields: a hello with a share of ffdhe8192 costs its sender nothing, and the server's thread 151 ms.
 */
export const TLS_TERMS: SecureContextOptions = {
  ecdhCurve: knowsHybridGroup() ? `${HYBRID_GROUP}:${GROUPS}` : GROUPS,
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.3',
  ciphers: SUITES,
  honorCipherOrder: true,
  // Peers that prefer ChaCha20, such as phones and small boards, have no AES instructions, so their preference wins. Renegotiation is
  // off: no TLS 1.2 peer gets a second handshake on a connection.
  secureOptions: constants.SSL_OP_PRIORITIZE_CHACHA | constants.SSL_OP_NO_RENEGOTIATION,
};

/** Returns TLS options for testing a certificate and key. The options have no ticket keys. */
export const secureOptionsOf = ({ cert, key }: CertificatePair): SecureContextOptions => ({ ...TLS_TERMS, cert, key });

/** Kind of port on which a TLS session can be resumed. A session cannot be resumed on a port of a different kind. */
export type TicketScope = 'visitors' | 'clients' | 'rest' | 'platform';

const DAY_MS = 86_400_000;
/** Time for which a TLS session can be resumed, as long as a ticket key is used. OpenSSL's default of 5 minutes is too short for people. */
const SESSION_SECONDS = DAY_MS / 1000;
const TICKET_KEY_BYTES = 48;

/**
 * TLS options with session tickets. Tickets of a day are sealed with a key derived from the secret and the day: servers with the same
 * secret agree on the key without communication, and tickets survive a change of the certificate. Node.js supports one ticket key at a
 * time, so a visitor with a ticket from the previous day needs a full handshake.
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

  /**
   * Returns the complete options, for the start and for every renewal, because setSecureContext resets every option that is missing.
   * `pair` is null if certificates are selected by name.
   */
  optionsOf(pair: CertificatePair | null, scope: TicketScope): SecureContextOptions {
    const tickets = { ticketKeys: this.#ticketKeys, sessionTimeout: SESSION_SECONDS };
    return { ...TLS_TERMS, ...pair, ...tickets, sessionIdContext: `tunnel-${scope}` };
  }

  /** Starts checking for the next day. `onNextDay` must replace existing contexts, because their tickets will not be accepted any more. */
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

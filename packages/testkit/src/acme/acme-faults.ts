// Faults that a test can inject into the ACME test server.
import { Refusal } from './read-jws.ts';

export type AcmeStep =
  | 'directory'
  | 'new-nonce'
  | 'new-account'
  | 'account'
  | 'new-order'
  | 'order'
  | 'authorization'
  | 'challenge'
  | 'finalize'
  | 'certificate'
  | 'renewal-info';

/** A fault for the next `times` calls of the given steps. `answer` replaces the normal response. */
export interface AcmeFault {
  readonly on: readonly AcmeStep[] | 'all';
  readonly times: number;
  readonly answer:
    | { readonly kind: 'bad-nonce' }
    | { readonly kind: 'rate-limited'; readonly retryAfter: string }
    | { readonly kind: 'status'; readonly status: number }
    | { readonly kind: 'already-replaced' }
    /** Sends no response until the server is closed. */
    | { readonly kind: 'silence' }
    | { readonly kind: 'cut' };
}

type Refused = Exclude<AcmeFault['answer'], { readonly kind: 'silence' | 'cut' }>;

export const refusalOf = (answer: Refused): Refusal => {
  if (answer.kind === 'bad-nonce') return new Refusal(400, 'badNonce', 'a nonce on command');
  if (answer.kind === 'already-replaced') return new Refusal(409, 'alreadyReplaced', 'it was replaced');
  if (answer.kind === 'status') return new Refusal(answer.status, 'serverInternal', 'an error on command');
  return new Refusal(429, 'rateLimited', 'too many orders', { 'retry-after': answer.retryAfter });
};

// The edge that answers for the platform's host: what it says of a visitor is believed for a secret of this run, never for the address it calls from.
import { headerOf } from '@tunnel/http-shell';
import { equalInConstantTime, type Secret } from '@tunnel/runtime';
import type { Context } from 'hono';
import type { PlatformEnv } from './platform-env.ts';

/** Who asks, as that edge says. */
export interface EdgesVisitor {
  readonly address: string;
  /** How the visitor came to the edge. */
  readonly isHttps: boolean;
}

/** Of no visitor the edge lets it through. */
const SECRET_HEADER = 'x-tunnel-secret';

export class EdgeInFront {
  readonly #secret: Secret;

  constructor(secret: Secret) {
    this.#secret = secret;
  }

  /** null: the request came another way, whatever it claims. */
  visitorOf(context: Context<PlatformEnv>): EdgesVisitor | null {
    const shown = headerOf(context, SECRET_HEADER);
    if (shown === undefined || !equalInConstantTime(shown, this.#secret.reveal())) return null;
    // Its own word is the last one; what stands before it, anybody could make up.
    const address = headerOf(context, 'x-forwarded-for')?.split(',').at(-1)?.trim() ?? '';
    return { address, isHttps: headerOf(context, 'x-forwarded-proto') === 'https' };
  }
}

// The edge that answers for the platform's host: what it says of a visitor is believed for a secret of this run, never for the address it calls from.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { type ServerConfig } from '@tunnel/config/server';
import { createCallerAddress } from '@tunnel/rules/net';
import { equalInConstantTime, type Secret } from '@tunnel/runtime';

/** Who asks, as that edge says. */
export interface EdgesVisitor {
  readonly address: string;
  /** How the visitor came to the edge. */
  readonly isHttps: boolean;
}

/** Of no visitor the edge lets it through. */
const SECRET_HEADER = 'x-tunnel-secret';

class TrustedEdgeHeader {
  readonly #secret: Secret;

  constructor(secret: Secret) {
    this.#secret = secret;
  }

  /** null: the request came another way, whatever it claims. */
  visitorOf(headers: IncomingHttpHeaders): EdgesVisitor | null {
    const shown = textOf(headers[SECRET_HEADER]);
    if (shown === undefined || !equalInConstantTime(shown, this.#secret.reveal())) return null;
    // Its own word is the last one; what stands before it, anybody could make up.
    const address = textOf(headers['x-forwarded-for'])?.split(',').at(-1)?.trim() ?? '';
    return { address, isHttps: textOf(headers['x-forwarded-proto']) === 'https' };
  }
}

/** Who asks, by the socket, by proxies that are trusted, or by the edge in front. */
export interface RequestSource {
  readonly address: string;
  /** null: it did not come by the edge in front. */
  readonly visitor: EdgesVisitor | null;
}

export interface RequestSourceOptions {
  readonly settings: Pick<ServerConfig['platform'], 'trusted_proxies'>;
  /** By which the edge in front shows that a request is one of its visitors'; absent: there is no such edge. */
  readonly edgeSecret?: Secret | undefined;
}

/** `incoming` absent: a call within the process. */
export const createRequestSource = ({ settings, edgeSecret }: RequestSourceOptions) => {
  const addressOf = createCallerAddress(settings.trusted_proxies);
  const front = edgeSecret === undefined ? null : new TrustedEdgeHeader(edgeSecret);
  return (incoming: Pick<IncomingMessage, 'headers' | 'socket'> | undefined): RequestSource => {
    const headers = incoming?.headers ?? {};
    const visitor = front?.visitorOf(headers) ?? null;
    const peer = incoming?.socket?.remoteAddress ?? '';
    return { visitor, address: visitor?.address ?? addressOf(peer, textOf(headers['x-forwarded-for'])) };
  };
};

const textOf = (value: string | string[] | undefined): string | undefined =>
  Array.isArray(value) ? value.join(', ') : value;

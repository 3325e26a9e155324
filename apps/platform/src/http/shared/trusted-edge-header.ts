// Trust in the edge that serves the platform's host. The edge's statements about a visitor are believed because of a secret generated for
// this run, never because of the edge's address.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { type ServerConfig } from '@tunnel/config/server';
import { createCallerAddress } from '@tunnel/rules/net';
import { equalInConstantTime, type Secret } from '@tunnel/runtime';

/** A visitor as reported by the edge in front. */
export interface EdgesVisitor {
  readonly address: string;
  /** True if the visitor reached the edge over https. */
  readonly isHttps: boolean;
}

/** Header with the edge's secret. The edge removes the header from visitors' requests. */
const SECRET_HEADER = 'x-tunnel-secret';

class TrustedEdgeHeader {
  readonly #secret: Secret;

  constructor(secret: Secret) {
    this.#secret = secret;
  }

  /** Returns the visitor reported by the edge. Null if the request did not come through the edge, whatever its headers claim. */
  visitorOf(headers: IncomingHttpHeaders): EdgesVisitor | null {
    const shown = textOf(headers[SECRET_HEADER]);
    if (shown === undefined || !equalInConstantTime(shown, this.#secret.reveal())) return null;
    // The edge appends the last address. Earlier addresses in the header can be forged by the visitor.
    const address = textOf(headers['x-forwarded-for'])?.split(',').at(-1)?.trim() ?? '';
    return { address, isHttps: textOf(headers['x-forwarded-proto']) === 'https' };
  }
}

/** The origin of a request, determined by the socket, by trusted proxies, or by the edge in front. */
export interface RequestSource {
  readonly address: string;
  /** Visitor reported by the edge in front. Null if the request did not come through the edge. */
  readonly visitor: EdgesVisitor | null;
}

export interface RequestSourceOptions {
  readonly settings: Pick<ServerConfig['platform'], 'trusted_proxies'>;
  /** Secret with which the edge in front proves that it forwards a visitor's request. Absent without such an edge. */
  readonly edgeSecret?: Secret | undefined;
}

/** Creates a function that determines the source of a request. `incoming` is absent for a call within the process. */
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

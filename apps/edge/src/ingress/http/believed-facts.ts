// Who asks when a proxy stands between: what it says counts when it is one of `trusted_proxies`, and nobody else's word does.
import { forwardedForOf, forwardedProtoOf, plainAddress, type RequestHead, TrustedProxies } from '@tunnel/core';
import type { VisitorFacts } from './visitor.ts';

export class BelievedFacts {
  readonly #proxies: TrustedProxies;

  constructor(trusted: readonly string[]) {
    this.#proxies = new TrustedProxies(trusted);
  }

  ofConnection(remoteAddress: string, scheme: VisitorFacts['scheme']): VisitorFacts {
    const address = plainAddress(remoteAddress);
    return { address, scheme, isProxy: this.#proxies.trusts(address) };
  }

  ofRequest(connection: VisitorFacts, head: RequestHead): VisitorFacts {
    if (!connection.isProxy) return connection;
    const { address, chain } = this.#proxies.callerOf(connection.address, forwardedForOf(head));
    const scheme = forwardedProtoOf(head) ?? connection.scheme;
    return { address, scheme, isProxy: true, forwardedFor: chain };
  }
}

// Where an HTTP request goes: by Host to what stands at that name or own domain, or to an answer of our own. Says; never does.

import { Fault } from '@tunnel/errors';
import {
  type EdgeResponse,
  forwardedForOf,
  forwardedProtoOf,
  type RequestHead,
  redirectToHttps,
  redirectToPages,
} from '@tunnel/http1';
import { CALLBACK_PATH } from '@tunnel/policy';
import { CARRIER_PATH, CONTROL_PATH, SPEED_PATH } from '@tunnel/protocol';
import { isDomainItself, isEdgeItself, isOfDomain } from '@tunnel/rules/names';
import { plainAddress, TrustedProxies } from '@tunnel/rules/net';
import { endpointOfHost, type HostEndpoint } from '@tunnel/rules/tunnels';
import { type HostSources, isHeldForTlsAt, isOfflineAt, routeAtHost } from './named-route.ts';
import type { PlatformRoute } from './platform-route.ts';
import type { Route } from './registry.ts';

/** Who asks, and how: as the listener knows the connection, or as a trusted proxy says of one request. */
export interface VisitorInfo {
  readonly address: string;
  readonly scheme: 'http' | 'https';
  /** A proxy of `trusted_proxies`: its requests are other people's, and it says whose. */
  readonly isProxy: boolean;
  /** All that a service is told in X-Forwarded-For; undefined: what the request claims, and the address. */
  readonly forwardedFor?: string;
}

/** What the edge answers by itself. */
export type EdgeReply =
  /** `requestId`: under which captures and clients have the request; absent: nobody has. */
  | { readonly fault: Fault; readonly retryAfterSecs?: number; readonly requestId?: string | undefined }
  /** Such as the way to https. */
  | { readonly response: EdgeResponse };

export const isEdgeReply = (value: object): value is EdgeReply => 'fault' in value || 'response' in value;

/** The way of one request: where to, and as whose request the service sees it. */
export interface RoutedRequest {
  readonly route: Route;
  readonly visitor: VisitorInfo;
}

/** It is no visitor that asks, but a client: its connection is the control plane's from this request on. */
export const TO_CONTROL = { to: 'control' } as const;

/** A promise where something must be asked first; the visitor's connection waits meanwhile. */
export type RouteDecision = RoutedRequest | EdgeReply | typeof TO_CONTROL;

export const isToControl = (decision: RouteDecision): decision is typeof TO_CONTROL => decision === TO_CONTROL;
export type RouteRequest = (connection: VisitorInfo, head: RequestHead) => RouteDecision | Promise<RouteDecision>;

export interface HttpRouterOptions extends HostSources {
  readonly domain: string;
  /** Addresses and networks. */
  readonly trustedProxies: readonly string[];
  /** The public https port a plain visitor of this host is sent to; null: its plain requests are served, too. */
  readonly redirectPort: (host: string) => number | null;
  /** [server] control_on_public. */
  readonly takesClients: boolean;
  /** The platform's host, where that is this edge's to answer; absent: it is not. */
  readonly platform?: Pick<PlatformRoute, 'isAt' | 'route'> | undefined;
  /** Where people reach the platform's pages: browsers that open the domain itself are led there. Absent or null: nowhere is known. */
  readonly platformUrl?: (() => string | null) | undefined;
  /** Of a login at one of the operator's providers, by path and query: on to the tunnel that it was begun at. Absent: there are none. */
  readonly callbackRelay?: ((path: string) => EdgeReply) | undefined;
}

/** A connection asks for one host after the other, and nearly always for the same: which endpoint that means is found once. */
class VisitorConnection implements VisitorInfo {
  readonly address: string;
  readonly scheme: VisitorInfo['scheme'];
  readonly isProxy: boolean;
  #host: string | null = null;
  #endpoint: HostEndpoint | null = null;

  constructor(address: string, scheme: VisitorInfo['scheme'], isProxy: boolean) {
    this.address = address;
    this.scheme = scheme;
    this.isProxy = isProxy;
  }

  endpointOf(host: string, domain: string): HostEndpoint {
    if (this.#endpoint === null || host !== this.#host) {
      this.#host = host;
      this.#endpoint = endpointOfHost(host, domain);
    }
    return this.#endpoint;
  }
}

/** Of the edge itself below its domain: reserved, so that no tunnel has it. */
const EDGE_NAME = 'edge';
const CLIENT_PATHS: ReadonlySet<string | undefined> = new Set([CONTROL_PATH, CARRIER_PATH, SPEED_PATH]);
const isClientPath = (path: string): boolean => CLIENT_PATHS.has(path.split('?', 1)[0]);

export class HttpRouter {
  readonly #options: HttpRouterOptions;
  readonly #proxies: TrustedProxies;

  constructor(options: HttpRouterOptions) {
    this.#options = options;
    this.#proxies = new TrustedProxies(options.trustedProxies);
  }

  /** Of a connection, as the listener knows it. */
  visitorOf(remoteAddress: string, scheme: VisitorInfo['scheme']): VisitorInfo {
    const address = plainAddress(remoteAddress);
    return new VisitorConnection(address, scheme, this.#proxies.trusts(address));
  }

  route(connection: VisitorInfo, head: RequestHead): RouteDecision {
    const visitor = this.#visitorOfRequest(connection, head);
    const endpoint = this.#endpointOf(connection, head.host);
    const redirectPort = visitor.scheme === 'http' ? this.#options.redirectPort(head.host) : null;
    // Nobody is sent to a host that is not ours, whoever names it here; a visitor of HTTP/1.0 may name none.
    const platform = this.#platformAt(head.host);
    if (redirectPort !== null && (platform !== null || this.#isOurs(endpoint, head.host))) {
      return { response: redirectToHttps(head, redirectPort) };
    }
    if (platform !== null) return this.#atPlatform(platform, head, visitor);
    const name = endpoint.kind === 'name' ? endpoint.name : null;
    if (name === null && redirectPort === null && this.#isOfClient(head)) return TO_CONTROL;
    const bounced = name === EDGE_NAME ? this.#relayedCallback(head) : null;
    if (bounced !== null) return bounced;
    const route = routeAtHost(this.#options, endpoint);
    if (route?.protocol === 'tls') return this.#notHere(connection, head);
    if (route !== undefined) return { route, visitor };
    if (isHeldForTlsAt(this.#options, endpoint)) return this.#notHere(connection, head);
    if (isOfflineAt(this.#options, endpoint)) return { fault: new Fault('TUNNEL_AWAY') };
    return (
      this.#toPlatform(head) ?? {
        fault: new Fault('TUNNEL_NOT_FOUND', { host: head.host === '' ? 'this address' : head.host }),
      }
    );
  }

  /** Of a browser that opens the edge's domain itself, where no tunnel is. The address is the platform's own, whatever the request says. */
  #toPlatform(head: RequestHead): EdgeReply | null {
    const { platformUrl, domain } = this.#options;
    if (platformUrl === undefined || !isDomainItself(head.host, domain)) return null;
    const url = platformUrl();
    const own = url === null ? null : redirectToPages(head, url);
    return own === null ? null : { response: own };
  }

  /**
   * TLS of this host ends at its service. A browser that uses one connection for all names of a certificate comes here all the same, and is told to
   * open another; in clear there is nothing.
   */
  #notHere({ scheme }: VisitorInfo, { host }: RequestHead): EdgeReply {
    return { fault: new Fault(scheme === 'https' ? 'HTTP_MISDIRECTED' : 'TUNNEL_NOT_FOUND', { host }) };
  }

  /** At or below the edge's domain, or an own domain that is served here, or would be. */
  #isOurs(endpoint: HostEndpoint, host: string): boolean {
    if (isOfDomain(host, this.#options.domain)) return true;
    return routeAtHost(this.#options, endpoint) !== undefined || isOfflineAt(this.#options, endpoint);
  }

  #endpointOf(connection: VisitorInfo, host: string): HostEndpoint {
    const { domain } = this.#options;
    return connection instanceof VisitorConnection ? connection.endpointOf(host, domain) : endpointOfHost(host, domain);
  }

  /** At a host that no tunnel can have, so that these paths are every service's own. */
  #isOfClient({ host, path }: RequestHead): boolean {
    const { takesClients, domain } = this.#options;
    return takesClients && isClientPath(path) && isEdgeItself(host, domain);
  }

  #platformAt(host: string): Route | null {
    const { platform } = this.#options;
    return platform?.isAt(host) === true ? platform.route : null;
  }

  /** The paths of clients stay the edge's there. */
  #atPlatform(route: Route, { host, path }: RequestHead, visitor: VisitorInfo): RouteDecision {
    if (!isClientPath(path)) return { route, visitor };
    return this.#options.takesClients ? TO_CONTROL : { fault: new Fault('TUNNEL_NOT_FOUND', { host }) };
  }

  #relayedCallback({ path }: RequestHead): EdgeReply | null {
    const { callbackRelay } = this.#options;
    return callbackRelay === undefined || path.split('?', 1)[0] !== CALLBACK_PATH ? null : callbackRelay(path);
  }

  /** What a proxy says counts when it is one of `trusted_proxies`, and nobody else's word does. */
  #visitorOfRequest(connection: VisitorInfo, head: RequestHead): VisitorInfo {
    if (!connection.isProxy) return connection;
    const { address, chain } = this.#proxies.callerOf(connection.address, forwardedForOf(head));
    const scheme = forwardedProtoOf(head) ?? connection.scheme;
    return { address, scheme, isProxy: true, forwardedFor: chain };
  }
}

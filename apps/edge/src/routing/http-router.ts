// Decides where an HTTP request goes: by its Host to the tunnel or group at the name or custom domain, or to a response by the edge. Has
// no side effects.

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

/** Address and scheme of a visitor: of the connection, or as reported by a trusted proxy for a single request. */
export interface VisitorInfo {
  readonly address: string;
  readonly scheme: 'http' | 'https';
  /** True for a proxy in `trusted_proxies`. A proxy forwards requests of other visitors and reports their addresses. */
  readonly isProxy: boolean;
  /**
   * Complete X-Forwarded-For header for the service. If undefined, the service gets the header of the request with the visitor's address
   * appended.
   */
  readonly forwardedFor?: string;
}

/** A response by the edge instead of a service. */
export type EdgeReply =
  /** Error page. `requestId` is the id under which captures and clients list the request; absent if the request is not listed. */
  | { readonly fault: Fault; readonly retryAfterSecs?: number; readonly requestId?: string | undefined }
  /** A complete response other than an error page, such as a redirect to https. */
  | { readonly response: EdgeResponse };

export const isEdgeReply = (value: object): value is EdgeReply => 'fault' in value || 'response' in value;

/** Route of a request, and the visitor as reported to the service. */
export interface RoutedRequest {
  readonly route: Route;
  readonly visitor: VisitorInfo;
}

/** Decision for a request of a client, not a visitor: from this request on, the control plane handles the connection. */
export const TO_CONTROL = { to: 'control' } as const;

/** Where a request goes: to a route, to a response by the edge, or to the control plane. */
export type RouteDecision = RoutedRequest | EdgeReply | typeof TO_CONTROL;

export const isToControl = (decision: RouteDecision): decision is typeof TO_CONTROL => decision === TO_CONTROL;
export type RouteRequest = (connection: VisitorInfo, head: RequestHead) => RouteDecision | Promise<RouteDecision>;

export interface HttpRouterOptions extends HostSources {
  readonly domain: string;
  /** IP addresses and networks of trusted proxies. */
  readonly trustedProxies: readonly string[];
  /** Returns the public https port to which plain http visitors of a host are redirected, or null if plain requests are served. */
  readonly redirectPort: (host: string) => number | null;
  /** True if clients can connect to the public ports (`[server] control_on_public`). */
  readonly takesClients: boolean;
  /** Route of the platform's host. Absent if this edge does not serve the platform. */
  readonly platform?: Pick<PlatformRoute, 'isAt' | 'route'> | undefined;
  /** Returns the public URL of the platform's pages, or null if unknown. Browsers that open the edge's domain are redirected there. */
  readonly platformUrl?: (() => string | null) | undefined;
  /**
   * Answers the login callback of the operator's providers, by path and query: redirects to the tunnel at which the login began. Absent
   * if there are no such providers.
   */
  readonly callbackRelay?: ((path: string) => EdgeReply) | undefined;
}

/** Visitor's connection. Caches the endpoint of the last host, because nearly all requests of a connection are for the same host. */
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

/** Subdomain of the edge for login callbacks. The name is reserved, so no tunnel can have it. */
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

  /** Returns the visitor for a connection of the listener. */
  visitorOf(remoteAddress: string, scheme: VisitorInfo['scheme']): VisitorInfo {
    const address = plainAddress(remoteAddress);
    return new VisitorConnection(address, scheme, this.#proxies.trusts(address));
  }

  route(connection: VisitorInfo, head: RequestHead): RouteDecision {
    const visitor = this.#visitorOfRequest(connection, head);
    const endpoint = this.#endpointOf(connection, head.host);
    const redirectPort = visitor.scheme === 'http' ? this.#options.redirectPort(head.host) : null;
    // Redirect only to hosts that this edge serves, because a visitor can send any Host; an HTTP/1.0 request may have no Host.
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

  /**
   * Redirects a browser that opens the edge's domain, where there is no tunnel, to the platform's pages. The target comes from the
   * platform, never from the request.
   */
  #toPlatform(head: RequestHead): EdgeReply | null {
    const { platformUrl, domain } = this.#options;
    if (platformUrl === undefined || !isDomainItself(head.host, domain)) return null;
    const url = platformUrl();
    const own = url === null ? null : redirectToPages(head, url);
    return own === null ? null : { response: own };
  }

  /**
   * Rejects a request for a host with TLS that ends at the service. Browsers can reuse one connection for all names of a certificate, so
   * the request arrives here anyway: over TLS, the response asks the browser to open another connection. Over plain http, the host does
   * not exist.
   */
  #notHere({ scheme }: VisitorInfo, { host }: RequestHead): EdgeReply {
    return { fault: new Fault(scheme === 'https' ? 'HTTP_MISDIRECTED' : 'TUNNEL_NOT_FOUND', { host }) };
  }

  /** Returns true for hosts at or below the edge's domain, and for custom domains of online or offline tunnels. */
  #isOurs(endpoint: HostEndpoint, host: string): boolean {
    if (isOfDomain(host, this.#options.domain)) return true;
    return routeAtHost(this.#options, endpoint) !== undefined || isOfflineAt(this.#options, endpoint);
  }

  #endpointOf(connection: VisitorInfo, host: string): HostEndpoint {
    const { domain } = this.#options;
    return connection instanceof VisitorConnection ? connection.endpointOf(host, domain) : endpointOfHost(host, domain);
  }

  /**
   * Returns true for a client's request. Such requests are recognized only at hosts that no tunnel can have, so that services can use the
   * same paths.
   */
  #isOfClient({ host, path }: RequestHead): boolean {
    const { takesClients, domain } = this.#options;
    return takesClients && isClientPath(path) && isEdgeItself(host, domain);
  }

  #platformAt(host: string): Route | null {
    const { platform } = this.#options;
    return platform?.isAt(host) === true ? platform.route : null;
  }

  /** Routes a request at the platform's host. The paths of clients are handled by the edge there, too. */
  #atPlatform(route: Route, { host, path }: RequestHead, visitor: VisitorInfo): RouteDecision {
    if (!isClientPath(path)) return { route, visitor };
    return this.#options.takesClients ? TO_CONTROL : { fault: new Fault('TUNNEL_NOT_FOUND', { host }) };
  }

  #relayedCallback({ path }: RequestHead): EdgeReply | null {
    const { callbackRelay } = this.#options;
    return callbackRelay === undefined || path.split('?', 1)[0] !== CALLBACK_PATH ? null : callbackRelay(path);
  }

  /** Returns the visitor of a request. X-Forwarded headers count only if the connection comes from a proxy in `trusted_proxies`. */
  #visitorOfRequest(connection: VisitorInfo, head: RequestHead): VisitorInfo {
    if (!connection.isProxy) return connection;
    const { address, chain } = this.#proxies.callerOf(connection.address, forwardedForOf(head));
    const scheme = forwardedProtoOf(head) ?? connection.scheme;
    return { address, scheme, isProxy: true, forwardedFor: chain };
  }
}

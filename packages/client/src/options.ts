// Options of connect(): checked once, with defaults filled in.
import { hostname } from 'node:os';
import { Fault } from '@tunnel/errors';
import { WIRE_LIMITS } from '@tunnel/protocol';
import { problemOfText, shownText } from '@tunnel/rules/names';
import { type Clock, InternalErrors, type Logger, Secret, silentLogger, systemClock } from '@tunnel/runtime';
import type { ConnectionSettings } from './connection/connection.ts';
import { type Proxy, parseProxy } from './connection/proxy/proxy-address.ts';
import type { OwnClients } from './local/target-guard.ts';
import { decideSecurity, parseServerAddress, type SecurityOptions } from './network/endpoint.ts';
import type { StatusListener } from './status.ts';

export interface ConnectOptions extends SecurityOptions {
  /** host:port of the edge's control port. Default port: 4040. */
  readonly server: string;
  readonly token: string | Secret;
  /**
   * Proxy out of this network: a URL (`http://`, `https://`, `socks5://`, `socks5h://`) or the result of chooseProxy(). Direct if
   * undefined, null or `none`.
   */
  readonly proxy?: string | Proxy | null | undefined;
  /** If true, the client retries the first connection without limit. Otherwise the client gives up after 30 s. */
  readonly wait?: boolean | undefined;
  /**
   * Folder (mode 0700) for the resume secret, so that a client restarted after a kill resumes its session, and for names and ports assigned
   * by edges, so that the next start requests them again. If undefined, nothing is written.
   */
  readonly stateDir?: string | undefined;
  /** Distinguishes clients with the same `stateDir`, by the tunnels they open. */
  readonly stateKey?: string | undefined;
  /** If true, names and ports assigned in earlier runs are forgotten instead of requested again. */
  readonly newNames?: boolean | undefined;
  /** Called for all status events, even before connect() returns. */
  readonly onStatus?: StatusListener | undefined;
  /** Name of the program that embeds the client, sent to the edge. */
  readonly agent?: string | undefined;
  /** Name of this computer in lists of tunnels: 1 to 64 printable characters. Default: the host name. */
  readonly clientName?: string | undefined;
  /** Other clients of this user. Their inspectors and sockets are never published. */
  readonly ownClients?: OwnClients | undefined;
  readonly logger?: Logger | undefined;
  readonly clock?: Clock | undefined;
  /** Random number in [0, 1) for the jitter of retries. */
  readonly random?: (() => number) | undefined;
  /** Signal that aborts the attempt to connect. */
  readonly signal?: AbortSignal | undefined;
}

export interface ClientSettings extends ConnectionSettings {
  readonly state: { readonly dir: string; readonly key: string } | null;
  readonly newNames: boolean;
  readonly ownClients: OwnClients | undefined;
}

const DEFAULT_AGENT = `tunnel-client/0.2.0 node/${process.versions.node}`;

/** Checks the options of connect(). Throws a Fault if they are invalid. */
export const checkOptions = (options: ConnectOptions): ClientSettings => {
  const address = parseServerAddress(options.server);
  const given: string | Secret | undefined = options.token;
  const token = typeof given === 'object' ? given : new Secret(given ?? '');
  if (token.reveal().trim() === '') throw new Fault('CLIENT_KEY_MISSING');
  // Such a long token is usually a wrong file. The edge could not parse the frame, and would not report why.
  if (token.reveal().length > WIRE_LIMITS.CONTROL_TOKEN_MAX_CHARS) throw new Fault('AUTH_TOKEN_INVALID');
  const { stateDir, stateKey = '', clock = systemClock } = options;
  const logger = options.logger ?? silentLogger;
  return {
    endpoint: { address, security: decideSecurity(address.host, options), proxy: proxyOf(options.proxy) },
    token,
    wait: options.wait ?? false,
    state: stateDir === undefined ? null : { dir: stateDir, key: `${address.text}|${stateKey}` },
    newNames: options.newNames ?? false,
    agent: printable(options.agent ?? DEFAULT_AGENT),
    clientName: clientNameOf(options.clientName),
    ownClients: options.ownClients,
    logger,
    report: new InternalErrors(logger, () => clock.monotonic()).report,
    clock,
    random: options.random ?? Math.random,
  };
};

const proxyOf = (given: ConnectOptions['proxy']): Proxy | null => {
  if (typeof given !== 'string') return given ?? null;
  return given === '' || given === 'none' ? null : parseProxy(given, { source: 'proxy' });
};

/** Returns the computer's name. An invalid chosen name is rejected; the host name is adapted instead. */
const clientNameOf = (chosen: string | undefined): string | undefined => {
  if (chosen === undefined) return shownText(hostname(), WIRE_LIMITS.CLIENT_NAME_MAX_CHARS) || undefined;
  const reason = problemOfText(chosen, WIRE_LIMITS.CLIENT_NAME_MAX_CHARS);
  if (reason !== null) throw new Fault('CLIENT_NAME_INVALID', { name: shownText(chosen), reason });
  return chosen;
};

/** Makes a text fit for a header: printable ASCII, at most 200 characters. */
const printable = (text: string): string => text.replace(/[^\x20-\x7e]/g, '?').slice(0, 200);

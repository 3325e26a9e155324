// What connect() takes, and what becomes of it: checked once, defaults filled in.
import { hostname } from 'node:os';
import { Fault } from '@tunnel/errors';
import { WIRE_LIMITS } from '@tunnel/protocol';
import { problemOfText, shownText } from '@tunnel/rules/names';
import { type Clock, createLogger, InternalErrors, type Logger, Secret, systemClock } from '@tunnel/runtime';
import type { ConnectionSettings } from './connection/connection.ts';
import { type Proxy, parseProxy } from './connection/proxy/proxy-address.ts';
import type { OwnClients } from './local/target-guard.ts';
import { decideSecurity, parseServerAddress, type SecurityOptions } from './network/endpoint.ts';
import type { StatusListener } from './status.ts';

export interface ConnectOptions extends SecurityOptions {
  /** host:port of the edge's control port; 4040 when the port is left out. */
  readonly server: string;
  readonly token: string | Secret;
  /** What leads out of this network: a URL (`http://`, `https://`, `socks5://`, `socks5h://`) or one that chooseProxy() gave. Left out, null or `none`: direct. */
  readonly proxy?: string | Proxy | null | undefined;
  /** Keeps trying for ever to reach a server at the start; else it gives up after 30 s. */
  readonly wait?: boolean | undefined;
  /**
   * A folder (0700) for the resume secret, so that a restart after a kill takes up the session, and for the names and ports that edges chose, so that
   * the next start asks for them again. Left out: nothing is written.
   */
  readonly stateDir?: string | undefined;
  /** Tells clients that share `stateDir` apart: what this one opens. */
  readonly stateKey?: string | undefined;
  /** true: names and ports that an edge chose in earlier runs are forgotten instead of asked for again. */
  readonly newNames?: boolean | undefined;
  /** Told from the first moment on, before connect() returns. */
  readonly onStatus?: StatusListener | undefined;
  /** Names the program at the edge. */
  readonly agent?: string | undefined;
  /** What this computer is called in lists of tunnels: 1 to 64 printable characters. Left out: its host name. */
  readonly clientName?: string | undefined;
  /** What the program around the client knows of this user's other clients: their inspectors and sockets are never published. */
  readonly ownClients?: OwnClients | undefined;
  readonly logger?: Logger | undefined;
  readonly clock?: Clock | undefined;
  /** In [0, 1): the jitter of retries. */
  readonly random?: (() => number) | undefined;
  /** Ends an attempt to connect. */
  readonly signal?: AbortSignal | undefined;
}

export interface ClientSettings extends ConnectionSettings {
  readonly state: { readonly dir: string; readonly key: string } | null;
  readonly newNames: boolean;
  readonly ownClients: OwnClients | undefined;
}

const DEFAULT_AGENT = `tunnel-client/0.1.0 node/${process.versions.node}`;

/** Throws a Fault for what cannot work. */
export const checkOptions = (options: ConnectOptions): ClientSettings => {
  const address = parseServerAddress(options.server);
  const given: string | Secret | undefined = options.token;
  const token = typeof given === 'object' ? given : new Secret(given ?? '');
  if (token.reveal().trim() === '') throw new Fault('CLIENT_KEY_MISSING');
  // A file that is no key, as a rule. The edge could not even read the frame, and would not say why.
  if (token.reveal().length > WIRE_LIMITS.CONTROL_TOKEN_MAX_CHARS) throw new Fault('AUTH_TOKEN_INVALID');
  const { stateDir, stateKey = '', clock = systemClock } = options;
  const logger = options.logger ?? createLogger({ level: 'silent', format: 'json' });
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

/** A name that was chosen is sent or refused; that of the host is made to fit. */
const clientNameOf = (chosen: string | undefined): string | undefined => {
  if (chosen === undefined) return shownText(hostname(), WIRE_LIMITS.CLIENT_NAME_MAX_CHARS) || undefined;
  const reason = problemOfText(chosen, WIRE_LIMITS.CLIENT_NAME_MAX_CHARS);
  if (reason !== null) throw new Fault('CLIENT_NAME_INVALID', { name: shownText(chosen), reason });
  return chosen;
};

/** It goes into a header: nothing but printable ASCII, and not much of it. */
const printable = (text: string): string => text.replace(/[^\x20-\x7e]/g, '?').slice(0, 200);

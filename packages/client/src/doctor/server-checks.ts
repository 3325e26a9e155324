// Connects to the edge step by step: name resolution, connection, certificate, control, key, carriers, datagrams. Every step returns facts
// without judging them. The key is sent only on a verified connection or to this machine.

import { lookup } from 'node:dns/promises';
import { request } from 'node:http';
import { connect as connectPlain, isIP, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { connect as connectTls, type PeerCertificate, type TLSSocket } from 'node:tls';
import { type ErrorCode, Fault } from '@tunnel/errors';
import type { Carrier } from '@tunnel/mux';
import type { EdgeUdp } from '@tunnel/peer';
import { ALPN_NAMES, type ControlMessage, type MessageOf } from '@tunnel/protocol';
import { isLoopbackHost } from '@tunnel/rules/net';
import { type Clock, unlessAborted } from '@tunnel/runtime';
import { AttemptFailed, authenticate } from '../connection/authenticate.ts';
import { dialCarrier } from '../connection/carrier-dialer.ts';
import { dialControl, explain } from '../connection/control-dialer.ts';
import { ControlLink } from '../connection/control-link.ts';
import { createEdgeUdp } from '../connection/datagram-path.ts';
import { dialSocket } from '../connection/dial-socket.ts';
import { dialThrough } from '../connection/proxy/dial-through.ts';
import { proxyUnreachable } from '../connection/proxy/proxy-faults.ts';
import { certificateFault, reasonOf, unreachable } from '../network/dial-faults.ts';
import { type ServerAddress } from '../network/endpoint.ts';
import { withinTime } from '../network/within-time.ts';
import type { ClientSettings } from '../options.ts';
import type {
  CarrierFacts,
  DnsFacts,
  EdgeFacts,
  KeyFacts,
  Problem,
  ProxyFacts,
  TcpFacts,
  TlsFacts,
} from './judge-path.rules.ts';
import type { BandwidthFacts, LatencyFacts, NatFacts, UdpFacts } from './judge-quality.rules.ts';
import type { ClockFacts } from './judge-settings.rules.ts';
import { pingCarrier, pingControl, pingUdp, type UdpAnswers } from './pings.ts';
import { measureBandwidth } from './speed.ts';

/** Maximum time that the doctor's pings on one connection take. */
export const DOCTOR_PINGS_WITHIN_MS = 3000;
/** Timeout for one name lookup, connection or TLS handshake. Slower steps are reported as not responding. */
export const DOCTOR_STEP_WITHIN_MS = 5000;

const DAY_MS = 24 * 60 * 60 * 1000;

export const toProblem = (error: unknown): Problem => {
  const fault = error instanceof AttemptFailed ? error.fault : Fault.from(error);
  // Unexpected errors have no useful catalogue message, so the original reason is shown.
  if (fault.code === 'INTERNAL') return { message: reasonOf(fault.cause ?? error), hint: 'Run the doctor again.' };
  return { message: fault.message, hint: HINTS[fault.code] ?? fault.next };
};

/** Hints of the doctor that replace catalogue hints written for `tunnel` commands. */
const HINTS: Partial<Record<ErrorCode, string>> = {
  CLIENT_SERVER_UNREACHABLE: 'Check --server and the network.',
};

export class ServerChecks {
  readonly #settings: ClientSettings;
  #link: ControlLink | null = null;
  #hello: MessageOf<'AuthOk'> | null = null;
  readonly #carriers: Carrier[] = [];
  #observer: EdgeUdp | null = null;
  #udp: UdpAnswers | null = null;

  readonly #hasKey: boolean;

  /** `hasKey` is false without an API key: the settings then hold a placeholder that must not be sent. */
  constructor(settings: ClientSettings, hasKey: boolean) {
    this.#settings = settings;
    this.#hasKey = hasKey;
  }

  /** Connects through the proxy. A successful connection also proves that the server's port is open. */
  async throughProxy(signal: AbortSignal): Promise<ProxyFacts> {
    const { clock, endpoint } = this.#settings;
    const { proxy } = endpoint;
    if (proxy === null) return { state: 'none', why: 'no proxy in use' };
    const since = clock.monotonic();
    try {
      (await this.#dialTcp(signal)).destroy();
      return { state: 'connected', shown: proxy.text, ms: clock.monotonic() - since };
    } catch (error) {
      // The proxy works if only the local name lookup failed, which the next check reports.
      if (isOfLookup(error)) return { state: 'connected', shown: proxy.text, ms: clock.monotonic() - since };
      return { state: 'failed', problem: toProblem(error) };
    }
  }

  async lookUp(signal: AbortSignal): Promise<DnsFacts> {
    const { clock, endpoint } = this.#settings;
    const { host } = endpoint.address;
    if (isIP(host) !== 0) return { state: 'address' };
    if (endpoint.proxy !== null && endpoint.proxy.kind !== 'socks5') return { state: 'by-proxy' };
    const since = clock.monotonic();
    try {
      const found = await withinStep(clock, signal, (within) => unlessAborted(lookup(host, { all: true }), within));
      return { state: 'resolved', host, addresses: found.map(({ address }) => address), ms: clock.monotonic() - since };
    } catch (error) {
      return { state: 'failed', host, reason: reasonOf(error) };
    }
  }

  async connect(signal: AbortSignal): Promise<TcpFacts> {
    const { clock, endpoint } = this.#settings;
    const server = endpoint.address.text;
    const since = clock.monotonic();
    try {
      (await this.#dialTcp(signal)).destroy();
      return { state: 'connected', server, ms: clock.monotonic() - since };
    } catch (error) {
      return { state: 'failed', server, reason: reasonOf(error) };
    }
  }

  /** Performs a TLS handshake. Only with a valid certificate is the edge then asked for the issuer of its certificate. */
  async secure(signal: AbortSignal): Promise<TlsFacts> {
    const { endpoint } = this.#settings;
    const { security, address } = endpoint;
    if (security.kind === 'plain') return { state: 'clear', toThisMachine: isLoopbackHost(address.host) };
    let socket: TLSSocket | undefined;
    try {
      socket = await this.#handshake(await this.#dialTcp(signal), signal);
      const certificate = socket.getPeerCertificate();
      if (security.verify && !socket.authorized) return { state: 'failed', problem: this.#certificateProblem(socket) };
      return {
        state: 'secured',
        version: socket.getProtocol() ?? 'TLS',
        alpn: socket.alpnProtocol || '',
        issuer: issuerOf(certificate),
        daysLeft: daysLeftOf(certificate, this.#settings.clock.now()),
        verified: security.verify,
        edgeIssuer: security.verify && this.#hasKey ? await this.#askIssuer(socket, signal) : null,
      };
    } catch (error) {
      return { state: 'failed', problem: toProblem(await explain(endpoint, this.#settings.clock, error)) };
    } finally {
      socket?.destroy();
    }
  }

  /** Reads the time from the `Date` header of a response, for which no trusted connection is needed. */
  async askTime(signal: AbortSignal): Promise<ClockFacts> {
    try {
      return { aheadMs: await this.#clockAhead(signal) };
    } catch {
      // If the server does not respond, the following checks report the reason.
      return { aheadMs: null };
    }
  }

  async #clockAhead(signal: AbortSignal): Promise<number | null> {
    const { clock, endpoint } = this.#settings;
    const raw = await this.#dialTcp(signal);
    const socket = endpoint.security.kind === 'plain' ? raw : await this.#handshake(raw, signal);
    const since = clock.now();
    const { date } = await this.#ask(socket, '/', {}, signal);
    const told = date === undefined ? Number.NaN : Date.parse(date);
    if (Number.isNaN(told)) return null;
    // The server wrote the date between request and response, in whole seconds: hence the midpoint and half a second.
    return (since + clock.now()) / 2 - (told + 500);
  }

  async greet(signal: AbortSignal): Promise<EdgeFacts> {
    const { endpoint, clock, agent, logger } = this.#settings;
    try {
      const wrap = (socket: ConstructorParameters<typeof ControlLink>[0], remoteAddress: string): ControlLink =>
        new ControlLink(socket, { clock, logger, remoteAddress });
      this.#link = await withinStep(clock, signal, (within) =>
        dialControl(endpoint, { clock, agent, signal: within, wrap }),
      );
      return { state: 'answered', server: endpoint.address.text };
    } catch (error) {
      return { state: 'failed', problem: toProblem(error) };
    }
  }

  async authenticate(signal: AbortSignal): Promise<KeyFacts> {
    const { token, agent, clock, endpoint } = this.#settings;
    const link = this.#link;
    if (link === null) throw new Fault('CLIENT_CLOSED');
    const who = { token, agent, resume: null };
    try {
      const hello = await withinStep(clock, signal, (within) => unlessAborted(authenticate(link, who, clock), within));
      this.#hello = hello;
      link.listen({ onMessage: (message) => this.#onMessage(message), onEnd: () => {} });
      return { state: 'accepted', region: hello.region_id, capabilities: hello.capabilities ?? [] };
    } catch (error) {
      const isSilent = error instanceof NoAnswer;
      return {
        state: 'refused',
        problem: toProblem(isSilent ? unreachable(endpoint.address.text, error.message) : error),
      };
    }
  }

  async openCarriers(signal: AbortSignal): Promise<CarrierFacts> {
    const { endpoint, clock, agent } = this.#settings;
    const { count, path, tokens } = this.#carriersOffered();
    let problem = '';
    await Promise.all(
      tokens.slice(0, count).map(async (token) => {
        try {
          const dial = (within: AbortSignal): Promise<Carrier> =>
            dialCarrier(endpoint, { clock, agent, path, token, signal: within });
          this.#carriers.push(await withinStep(clock, signal, dial));
        } catch (error) {
          problem = toProblem(error).message;
        }
      }),
    );
    return { wanted: Math.min(count, tokens.length), opened: this.#carriers.length, problem };
  }

  async ping(signal: AbortSignal): Promise<LatencyFacts> {
    const { clock } = this.#settings;
    const link = this.#link;
    const [carrier] = this.#carriers;
    const pings = (take: (within: AbortSignal) => Promise<number[]>): Promise<number[]> =>
      withinTime(clock, DOCTOR_PINGS_WITHIN_MS, new NoAnswer(), (late) => take(AbortSignal.any([signal, late])));
    return {
      control: link === null ? [] : await pings((within) => pingControl(link, within)),
      carrier: carrier === undefined ? [] : await pings((within) => pingCarrier(carrier, clock, within)),
    };
  }

  measure(signal: AbortSignal): Promise<BandwidthFacts> {
    const { endpoint, token, clock } = this.#settings;
    const dial = (stop: AbortSignal): Promise<Socket> =>
      withinStep(clock, stop, (within) => dialSocket(endpoint, { clock, minTlsVersion: 'TLSv1.2', signal: within }));
    return measureBandwidth({ server: endpoint.address.text, token, clock, dial }, signal);
  }

  async askUdp(signal: AbortSignal): Promise<UdpFacts> {
    const observer = this.#observer;
    if (observer === null) return { state: 'not-offered', why: 'the edge does not offer UDP' };
    this.#udp = await pingUdp(observer, this.#settings.clock, signal);
    return { state: 'asked', sent: this.#udp.sent, answered: this.#udp.answered };
  }

  /** Result of the UDP pings for judging NAT. Null if no pings were sent. */
  get nat(): NatFacts | null {
    if (this.#udp === null) return null;
    const { seen } = this.#udp;
    return { seen, isOwn: seen.some((address) => address !== null && isOfThisMachine(address)) };
  }

  close(): void {
    for (const carrier of this.#carriers) carrier.destroy('the doctor has finished');
    // Announces the end of the session, so that the edge releases it immediately.
    this.#link?.send({ type: 'ShuttingDown', reason: 'the doctor has finished', drain_secs: 0 });
    this.#link?.close(1000, '');
  }

  /** Opens a TCP connection to the server, through the proxy if configured. Resolves with a paused socket. */
  async #dialTcp(signal: AbortSignal): Promise<Socket> {
    const { clock, endpoint } = this.#settings;
    const { address, security, proxy } = endpoint;
    const dial = (within: AbortSignal): Promise<Socket> =>
      proxy === null ? connectTcp(address, within) : dialThrough(proxy, address, { clock, security, signal: within });
    try {
      return await withinStep(clock, signal, dial);
    } catch (error) {
      throw proxy !== null && error instanceof NoAnswer ? proxyUnreachable(proxy, error) : error;
    }
  }

  #onMessage(message: ControlMessage): void {
    if (message.type === 'DatagramPath') this.#observer = createEdgeUdp(message, this.#link?.remoteAddress ?? '');
  }

  #carriersOffered(): MessageOf<'AuthOk'>['carriers'] {
    if (this.#hello === null) throw new Fault('CLIENT_CLOSED');
    return this.#hello.carriers;
  }

  /** Makes a TLS handshake with the server and accepts any certificate. The caller judges the certificate. */
  #handshake(raw: Socket, signal: AbortSignal): Promise<TLSSocket> {
    const { endpoint, clock } = this.#settings;
    const { address, security } = endpoint;
    const ca = security.kind === 'tls' ? security.ca : undefined;
    const shake = (within: AbortSignal): Promise<TLSSocket> =>
      new Promise((resolve, reject) => {
        const socket = connectTls({
          socket: raw,
          ALPNProtocols: [...ALPN_NAMES],
          rejectUnauthorized: false,
          ...(isIP(address.host) === 0 ? { servername: address.host } : { host: address.host }),
          ...(ca === undefined ? {} : { ca }),
        });
        const opened = endWith(socket, within);
        socket.once('error', reject);
        socket.once('secureConnect', () => {
          opened();
          socket.off('error', reject);
          socket.on('error', () => {});
          resolve(socket);
        });
      });
    return withinStep(clock, signal, shake);
  }

  #certificateProblem(socket: TLSSocket): Problem {
    const error = socket.authorizationError as unknown;
    // Node.js reports an OpenSSL error code, or an error with such a code.
    const code = typeof error === 'string' ? error : ((error as NodeJS.ErrnoException | null)?.code ?? 'CERT_REJECTED');
    const cause = Object.assign(error instanceof Error ? error : new Error(words(code)), { code });
    return toProblem(certificateFault(this.#settings.endpoint.address.text, cause) ?? cause);
  }

  /** Asks the edge for its certificate issuer. Returns null if the server does not report an issuer, as older edges and unknown servers. */
  async #askIssuer(socket: TLSSocket, signal: AbortSignal): Promise<string | null> {
    const authorization = `Bearer ${this.#settings.token.reveal()}`;
    try {
      const headers = await this.#ask(socket, '/_speed?bytes=0', { authorization }, signal);
      return headers['tunnel-certificate-issuer'] ?? null;
    } catch {
      return null;
    }
  }

  /** Sends a request and returns the response headers. The connection cannot be reused afterwards. */
  #ask(
    socket: Socket,
    path: string,
    more: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<Readonly<Record<string, string | undefined>>> {
    const headers = { host: this.#settings.endpoint.address.text, connection: 'close', ...more };
    const ask = (within: AbortSignal): Promise<Readonly<Record<string, string | undefined>>> =>
      new Promise((resolve, reject) => {
        const asked = request({ createConnection: () => socket, path, headers, setHost: false, signal: within });
        asked.on('error', reject);
        asked.once('response', (response) => {
          response.resume();
          resolve(response.headers as Record<string, string | undefined>);
          socket.destroy();
        });
        asked.end();
      });
    return withinStep(this.#settings.clock, signal, ask);
  }
}

const isOfLookup = (error: unknown): boolean => (error as NodeJS.ErrnoException | null)?.syscall === 'getaddrinfo';

/** Formats an issuer as the edge writes it into a header, for comparison. */
const issuerOf = ({ issuer }: PeerCertificate): string =>
  String(issuer?.CN ?? issuer?.O ?? 'an unnamed CA').replace(/[^\x20-\x7e]/g, '?');

const daysLeftOf = (certificate: PeerCertificate, now: number): number =>
  Math.floor((Date.parse(certificate.valid_to) - now) / DAY_MS);

const words = (code: string): string => code.toLowerCase().replaceAll('_', ' ');

/** Tells whether `address` (with a port, IPv6 in brackets) belongs to this machine. */
const isOfThisMachine = (address: string): boolean => {
  const host = address.slice(0, address.lastIndexOf(':')).replace(/^\[|\]$/g, '');
  return Object.values(networkInterfaces()).some((addresses) => addresses?.some((own) => own.address === host));
};

// ---- one step with a separate timeout, so that a silent server leaves time for the following steps ----

/** Error for a step of a check that reached its timeout. */
class NoAnswer extends Error {
  constructor() {
    super(`no response within ${DOCTOR_STEP_WITHIN_MS / 1000} s`);
  }
}

/** Runs a step with a timeout. `take` must end when its signal aborts, with NoAnswer or with the reason of `signal`. */
const withinStep = <T>(clock: Clock, signal: AbortSignal, take: (signal: AbortSignal) => Promise<T>): Promise<T> =>
  withinTime(clock, DOCTOR_STEP_WITHIN_MS, new NoAnswer(), (late) => take(AbortSignal.any([signal, late])));

/** Destroys a connecting socket when the signal aborts. Returns a function to call once the socket is open. */
const endWith = (socket: Socket, signal: AbortSignal): (() => void) => {
  const stop = (): void => void socket.destroy(signal.reason as Error);
  if (signal.aborted) stop();
  signal.addEventListener('abort', stop, { once: true });
  return () => signal.removeEventListener('abort', stop);
};

const connectTcp = ({ host, port }: ServerAddress, signal: AbortSignal): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connectPlain({ host, port, noDelay: true });
    const opened = endWith(socket, signal);
    socket.once('error', reject);
    socket.once('connect', () => {
      opened();
      socket.off('error', reject);
      // Between two owners the socket needs an error listener. The error resurfaces with the next write.
      socket.on('error', () => {});
      resolve(socket);
    });
  });

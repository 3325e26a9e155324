// The way to the edge, walked step by step as the client walks it at once: name, connection, certificate, control, key, carriers, datagrams.
// Each step says what it saw; none judges it. Only a verified connection, or one to this machine, gets the key.

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

/** how long it pings one connection at most */
export const DOCTOR_PINGS_WITHIN_MS = 3000;
/** for one look at the name, the connection or the certificate: what takes longer is found by its silence */
export const DOCTOR_STEP_WITHIN_MS = 5000;

const DAY_MS = 24 * 60 * 60 * 1000;

export const toProblem = (error: unknown): Problem => {
  const fault = error instanceof AttemptFailed ? error.fault : Fault.from(error);
  // What nobody foresaw has no hint of its own, and words that help nobody.
  if (fault.code === 'INTERNAL') return { message: reasonOf(fault.cause ?? error), hint: 'Run the doctor again.' };
  return { message: fault.message, hint: HINTS[fault.code] ?? fault.next };
};

/** Where the catalogue speaks to somebody who runs a tunnel. */
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

  /** Without a key its settings hold something in its place, which is not to be sent. */
  constructor(settings: ClientSettings, hasKey: boolean) {
    this.#settings = settings;
    this.#hasKey = hasKey;
  }

  /** A proxy that connects has shown that the server's port is open, too. */
  async throughProxy(signal: AbortSignal): Promise<ProxyFacts> {
    const { clock, endpoint } = this.#settings;
    const { proxy } = endpoint;
    if (proxy === null) return { state: 'none', why: 'no proxy in use' };
    const since = clock.monotonic();
    try {
      (await this.#dialTcp(signal)).destroy();
      return { state: 'connected', shown: proxy.text, ms: clock.monotonic() - since };
    } catch (error) {
      // A name that is looked up here is the business of the next check.
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

  /** Sends nothing but a handshake, unless the certificate is good: then the edge is asked for the name of its own. */
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

  /** By the `Date` of an answer that nobody has to be trusted for. */
  async askTime(signal: AbortSignal): Promise<ClockFacts> {
    try {
      return { aheadMs: await this.#clockAhead(signal) };
    } catch {
      // Why it does not answer is what the next checks are about.
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
    // It was written between our question and its answer, and tells whole seconds.
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

  /** null: nothing was asked by UDP. */
  get nat(): NatFacts | null {
    if (this.#udp === null) return null;
    const { seen } = this.#udp;
    return { seen, isOwn: seen.some((address) => address !== null && isOfThisMachine(address)) };
  }

  close(): void {
    for (const carrier of this.#carriers) carrier.destroy('the doctor has finished');
    // A goodbye, so that the edge keeps nothing for us.
    this.#link?.send({ type: 'ShuttingDown', reason: 'the doctor has finished', drain_secs: 0 });
    this.#link?.close(1000, '');
  }

  /** Bytes go to the server from here on, through the proxy if there is one. Settles with a paused socket. */
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

  /** Accepts any certificate: what it is worth is for the caller to say. */
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
    // A word of OpenSSL's, or an error with one.
    const code = typeof error === 'string' ? error : ((error as NodeJS.ErrnoException | null)?.code ?? 'CERT_REJECTED');
    const cause = Object.assign(error instanceof Error ? error : new Error(words(code)), { code });
    return toProblem(certificateFault(this.#settings.endpoint.address.text, cause) ?? cause);
  }

  /** null: it does not say, as older edges and strangers. */
  async #askIssuer(socket: TLSSocket, signal: AbortSignal): Promise<string | null> {
    const authorization = `Bearer ${this.#settings.token.reveal()}`;
    try {
      const headers = await this.#ask(socket, '/_speed?bytes=0', { authorization }, signal);
      return headers['tunnel-certificate-issuer'] ?? null;
    } catch {
      return null;
    }
  }

  /** The head of what is answered. The connection is of no more use then. */
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

/** As an edge writes it into a header, to be compared with it. */
const issuerOf = ({ issuer }: PeerCertificate): string =>
  String(issuer?.CN ?? issuer?.O ?? 'an unnamed CA').replace(/[^\x20-\x7e]/g, '?');

const daysLeftOf = (certificate: PeerCertificate, now: number): number =>
  Math.floor((Date.parse(certificate.valid_to) - now) / DAY_MS);

const words = (code: string): string => code.toLowerCase().replaceAll('_', ' ');

/** `address`: with a port, IPv6 in brackets. */
const isOfThisMachine = (address: string): boolean => {
  const host = address.slice(0, address.lastIndexOf(':')).replace(/^\[|\]$/g, '');
  return Object.values(networkInterfaces()).some((addresses) => addresses?.some((own) => own.address === host));
};

// ---- one step: it has a time of its own, so that one that is never answered leaves some for those behind it ----

/** Its time was over. */
class NoAnswer extends Error {
  constructor() {
    super(`no response within ${DOCTOR_STEP_WITHIN_MS / 1000} s`);
  }
}

/** `take` is to end with the signal that it is given: with NoAnswer, or with the reason of `signal`. */
const withinStep = <T>(clock: Clock, signal: AbortSignal, take: (signal: AbortSignal) => Promise<T>): Promise<T> =>
  withinTime(clock, DOCTOR_STEP_WITHIN_MS, new NoAnswer(), (late) => take(AbortSignal.any([signal, late])));

/** Ends a socket that is being opened with its signal. Returns what is to be called once it is open. */
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
      // From here on whoever has it listens; what comes in between is told by the next write.
      socket.on('error', () => {});
      resolve(socket);
    });
  });

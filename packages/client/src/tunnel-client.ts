// The client behind the interface: one connection, the tunnels on it, the visitors in them, and what a restart needs.

import { Fault } from '@tunnel/errors';
import type { StreamReason } from '@tunnel/protocol';
import type { Timer } from '@tunnel/runtime';
import type { Client, ClientState, CloseOptions } from './client.ts';
import { Connection, type Wait } from './connection.ts';
import { unreachable } from './dial-faults.ts';
import { sayFarewell } from './farewell.ts';
import { type Inspector, startInspector } from './inspector/inspector.ts';
import { CLIENT_LIMITS } from './limits.ts';
import type { ClientSettings } from './options.ts';
import type { RequestListener } from './requests/request-events.ts';
import { RequestFeed } from './requests/request-feed.ts';
import { type ResumeStore, takeSlot } from './resume-state.ts';
import { RetryPace } from './retry-pace.ts';
import type { Session } from './session.ts';
import type { StatusFeed, StatusListener } from './status.ts';
import { StreamDesk } from './stream-desk.ts';
import { KeptTunnel, type Tunnel } from './tunnel.ts';
import { TunnelBook } from './tunnel-book.ts';
import { checkTunnelSpec, type TunnelSpec } from './tunnel-spec.ts';

const TOUCH_EVERY_TICKS = 60;
const STOPPING: StreamReason = { code: 'shutting-down', text: 'the client is stopping' };

export class TunnelClient implements Client {
  readonly closed: Promise<Fault | undefined>;
  readonly #settings: ClientSettings;
  readonly #feed: StatusFeed;
  readonly #book: TunnelBook;
  readonly #desk: StreamDesk;
  readonly #requests: RequestFeed;
  #inspector: Promise<Inspector | null> | null = null;
  readonly #connection: Connection;
  readonly #store: ResumeStore | null;
  readonly #ticker: Timer;
  #state: ClientState = 'connecting';
  #resume: { readonly sessionId: string; readonly secret: string } | null;
  #ticks = 0;
  #lastFault: Fault | null = null;
  /** Set from a reconnection until every tunnel has its answer. */
  #announce: { readonly resumed: boolean } | null = null;
  #cutDrain: () => void = () => {};
  #resolveClosed: (fault: Fault | undefined) => void = () => {};
  #onFirstUp: () => void = () => {};

  constructor(settings: ClientSettings, feed: StatusFeed) {
    this.#settings = settings;
    this.#feed = feed;
    this.closed = new Promise((resolve) => {
      this.#resolveClosed = resolve;
    });
    this.#requests = new RequestFeed(settings.clock);
    this.#book = this.#makeBook();
    this.#desk = this.#makeDesk();
    this.#connection = this.#makeConnection();
    this.#store = settings.state === null ? null : takeSlot({ ...settings.state, logger: settings.logger });
    const saved = this.#store?.load() ?? null;
    this.#resume = saved;
    this.#book.recall(saved?.tunnels ?? []);
    this.#ticker = settings.clock.setInterval(() => this.#tick(), CLIENT_LIMITS.CLIENT_TICK_MS);
  }

  get state(): ClientState {
    return this.#state;
  }

  get tunnels(): readonly Tunnel[] {
    return this.#book.tunnels;
  }

  get openConnections(): number {
    return this.#desk.served;
  }

  onStatus(listener: StatusListener): () => void {
    return this.#feed.on(listener);
  }

  onRequest(listener: RequestListener): () => void {
    return this.#requests.on(listener);
  }

  /** One per client: its requests are kept once. */
  openInspector(): Promise<Inspector | null> {
    const { clock, logger } = this.#settings;
    this.#inspector ??= startInspector({ feed: this.#requests, clock, logger, tunnels: () => this.tunnels });
    return this.#inspector;
  }

  /** Settles with the first session; rejects with what made it impossible. */
  async start(): Promise<void> {
    const { clock, wait, endpoint } = this.#settings;
    const server = endpoint.address.text;
    const seconds = CLIENT_LIMITS.FIRST_CONNECT_TIMEOUT_MS / 1000;
    const deadline = wait
      ? null
      : clock.setTimeout(() => {
          this.#finish(this.#lastFault ?? unreachable(server, `no answer within ${seconds} s`));
        }, CLIENT_LIMITS.FIRST_CONNECT_TIMEOUT_MS);
    this.#feed.emit({ type: 'connecting', server });
    const up = new Promise<'up'>((resolve) => {
      this.#onFirstUp = () => resolve('up');
    });
    this.#connection.start();
    const first = await Promise.race([up, this.closed.then((fault) => fault ?? new Fault('CLIENT_CLOSED'))]);
    deadline?.cancel();
    if (first !== 'up') throw first;
  }

  async open(spec: TunnelSpec): Promise<Tunnel> {
    if (this.#state === 'closing' || this.#state === 'closed') throw new Fault('CLIENT_CLOSED');
    checkTunnelSpec(spec);
    const { clock, random } = this.#settings;
    const tunnel = new KeptTunnel(spec, {
      pace: new RetryPace(clock, random),
      closer: (closing) => this.#book.close(closing),
    });
    this.#book.add(tunnel);
    return tunnel.opened;
  }

  async close({ drainMs = 0 }: CloseOptions = {}): Promise<void> {
    if (this.#state === 'closed') return;
    if (this.#state !== 'closing') void this.#end(drainMs);
    else if (drainMs === 0) this.#cutDrain();
    await this.closed;
  }

  async #end(drainMs: number): Promise<void> {
    this.#state = 'closing';
    this.#feed.emit({ type: 'closing' });
    this.#book.closeAll();
    const session = this.#connection.stop();
    session?.link.send({ type: 'ShuttingDown', reason: STOPPING.text, drain_secs: Math.ceil(drainMs / 1000) });
    await this.#drained(drainMs);
    session?.close(STOPPING);
    if (session !== null) await sayFarewell(session.link, this.#settings.clock);
    this.#finish();
  }

  async #drained(drainMs: number): Promise<void> {
    const { clock } = this.#settings;
    if (drainMs <= 0) return;
    const cut = new Promise<void>((resolve) => {
      const timer = clock.setTimeout(resolve, drainMs);
      this.#cutDrain = () => {
        timer.cancel();
        resolve();
      };
    });
    await Promise.race([this.#desk.whenIdle(), cut]);
    this.#cutDrain();
  }

  #finish(fault?: Fault): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    this.#ticker.cancel();
    const session = this.#connection.stop();
    session?.close(STOPPING);
    this.#connection.closeRetired(STOPPING);
    this.#book.sessionDown();
    this.#book.closeAll(fault);
    this.#desk.recheck();
    this.#store?.release({ forget: fault === undefined });
    void this.#inspector?.then((inspector) => inspector?.close());
    this.#feed.emit(fault === undefined ? { type: 'closed' } : { type: 'closed', fault });
    this.#resolveClosed(fault);
  }

  #tick(): void {
    this.#connection.tick(this.#settings.clock.monotonic());
    this.#ticks += 1;
    if (this.#ticks % TOUCH_EVERY_TICKS === 0) this.#store?.touch();
  }

  #onUp(session: Session): void {
    const first = this.#state === 'connecting';
    this.#state = 'connected';
    this.#lastFault = null;
    if (first) this.#feed.emit({ type: 'connected', sessionId: session.id, resumed: session.resumed });
    else this.#announce = { resumed: session.resumed };
    this.#book.sessionUp(session.link);
    this.#announceIfSettled();
    this.#onFirstUp();
  }

  #onWaiting({ attempt, delayMs, fault, planned }: Wait): void {
    this.#lastFault = fault;
    if (this.#state === 'connected') this.#state = 'reconnecting';
    this.#feed.emit({ type: 'reconnecting', attempt, delayMs, reason: fault.message, planned });
  }

  #onDown(): void {
    this.#announce = null;
    this.#book.sessionDown();
    this.#desk.recheck();
  }

  #announceIfSettled(): void {
    if (this.#announce === null || this.#book.hasOpenQuestions) return;
    const { resumed } = this.#announce;
    this.#announce = null;
    this.#feed.emit({ type: 'reconnected', resumed });
  }

  #save(): void {
    if (this.#resume !== null) this.#store?.save({ ...this.#resume, tunnels: this.#book.saved() });
  }

  #makeBook(): TunnelBook {
    return new TunnelBook({
      settings: this.#settings,
      emit: (event) => this.#feed.emit(event),
      onChanged: () => this.#save(),
      onAnswer: () => {
        this.#desk.recheck();
        this.#announceIfSettled();
      },
    });
  }

  #makeDesk(): StreamDesk {
    return new StreamDesk({
      clock: this.#settings.clock,
      find: (tunnelId) => this.#book.find(tunnelId),
      expectsTunnels: () => this.#book.hasOpenQuestions,
      wrap: (visitor, tunnel) => this.#requests.wrap(visitor, tunnel),
      emit: (event) => this.#feed.emit(event),
    });
  }

  #makeConnection(): Connection {
    return new Connection(this.#settings, {
      resume: () => this.#resume,
      onAuthenticated: ({ id, secret, resumed }) => {
        this.#resume = { sessionId: id, secret };
        if (!resumed) this.#book.forgetIds();
        this.#save();
      },
      onUp: (session) => this.#onUp(session),
      onDown: () => this.#onDown(),
      onWaiting: (wait) => this.#onWaiting(wait),
      onMessage: (message) => this.#book.onMessage(message),
      onStream: (stream, head) => this.#desk.onStream(stream, head),
      onFatal: (fault) => this.#finish(fault),
    });
  }
}

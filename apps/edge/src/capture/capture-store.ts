// The captured requests of all tunnels, in memory: bounded in number and bytes, kept for an hour after a tunnel's end.
import { type ChunkedForm, type EdgeResponse, type RequestHead } from '@tunnel/http1';
import { requestIdOf } from '@tunnel/protocol';
import { NOT_RANKED, type Ranked, Ranking } from '@tunnel/rules/collections';
import { Shares } from '@tunnel/rules/rate';
import { type Owner, tenantKey } from '@tunnel/rules/tunnels';
import type { Clock, Timer } from '@tunnel/runtime';
import { EDGE_LIMITS } from '../limits.ts';
import type { TunnelWatcher } from '../routing/registry.ts';
import type { Tunnel } from '../routing/tunnel.ts';
import type { CapturedRules } from '../upstream/captured-rules.ts';
import { type CaptureBuffer, CaptureRecorder } from './recorder.ts';
import { RequestWaits } from './request-waits.ts';
import { isAnsweredByRule } from './stored-head.ts';

/** kept requests of a tunnel that a rule has answered: refused visitors do not push out the requests of others */
const CAPTURES_ANSWERED_PER_TUNNEL = 50;
/**
 * heads and bodies of one tunnel’s kept requests; the oldest go first
 * @limit dashboard: Captured requests per tunnel, total size | the oldest request is dropped
 */
export const CAPTURE_BYTES_PER_TUNNEL = 4 * 1024 * 1024;
/** the same for all tunnels together; the account that keeps the most beyond its `account_share` lets go of its oldest first */
export const CAPTURE_BYTES_MAX = 64 * 1024 * 1024;
/**
 * a person looks for what went wrong after the tunnel is closed, too
 * @limit dashboard: Captured requests of a closed tunnel, retention | the requests are dropped
 */
export const CAPTURE_KEPT_AFTER_END_MS = 3600 * 1000;
/** ended tunnels whose list of requests is empty instead of unknown; the oldest go first */
export const CAPTURE_TUNNELS_REMEMBERED = 20_000;
/** how often what has outlived its tunnel by its time is dropped */
export const CAPTURE_SWEEP_MS = 10_000;

export interface CaptureStoreOptions {
  /** [capture] of server.toml. */
  readonly enabled: boolean;
  readonly bodies: boolean;
  /** `[limits] account_share`. */
  readonly accountShare: number;
  readonly clock: Clock;
  /** Makes the ids of this run differ from those of the last one. */
  readonly runId: string;
}

/** How a request came to its service, beside its head. */
export interface CaptureDetails {
  readonly rules?: CapturedRules | null;
  /** null, or absent: the tunnel's own. */
  readonly serviceName?: string | null;
  readonly replay?: ReplaySource | null;
  /** Of the same request in another tunnel's list: both have one id. */
  readonly sequence?: number | undefined;
}

/** What makes a request one that was sent again. */
export interface ReplaySource {
  readonly original: CaptureRecorder;
  readonly isEdited: boolean;
}

export interface CapturePage {
  /** Newest first. */
  readonly recorders: readonly CaptureRecorder[];
  /** There were older ones than these, kept or not. */
  readonly truncated: boolean;
  /** For the page with the next older ones; null: no older ones are kept. */
  readonly nextCursor: string | null;
}

/** Which of the kept requests are listed; what is left out leaves out none. */
export interface WantedCaptures {
  /** Of readPageCursor(): only requests that are older than those of the page with that cursor. */
  readonly before?: number | undefined;
  readonly isWanted?: ((recorder: CaptureRecorder) => boolean) | undefined;
}

/** An ended tunnel of which nothing is kept but whose it was. */
interface Remembered {
  readonly owner: Owner;
  readonly isTruncated: boolean;
}

export class CaptureStore implements TunnelWatcher {
  /** Who waits for a request to finish. */
  readonly waits: RequestWaits;
  readonly #options: CaptureStoreOptions;
  /** Of tunnels with at least one request. */
  readonly #byTunnel = new Map<string, TunnelCaptures>();
  readonly #remembered = new Map<string, Remembered>();
  /** What each account keeps, in bytes, its ended tunnels included. */
  readonly #shares: Shares;
  /** The tunnels of each account that keep requests; the one with the oldest first. */
  readonly #byAccount = new Map<string, Ranking<TunnelCaptures>>();
  #sequence = 0;
  #sweeping: Timer | null = null;

  constructor(options: CaptureStoreOptions) {
    this.#options = options;
    const limit = CAPTURE_BYTES_MAX;
    this.#shares = new Shares({ limit, perHolder: limit * options.accountShare });
    this.waits = new RequestWaits(options.clock);
  }

  get bytes(): number {
    return this.#shares.taken;
  }

  /**
   * A request begins to be served by the tunnel. `startedMs` is monotonic; a chunked body of it will pass by in `bodyForm`.
   * null: captures are off, for this tunnel or for all.
   */
  begin(
    tunnel: Tunnel,
    head: Pick<RequestHead, 'text' | 'framing'>,
    startedMs: number,
    bodyForm: ChunkedForm,
    details: CaptureDetails = NO_DETAILS,
  ): CaptureRecorder | null {
    const { enabled, bodies, clock } = this.#options;
    if (!enabled || tunnel.http?.capture !== true) return null;
    // Looked at here and not before: what they say may have to be made.
    const { rules = null, serviceName = null, replay = null } = details;
    const captures = this.#byTunnel.get(tunnel.tunnelId) ?? this.#add(tunnel);
    if (details.sequence === undefined) this.#sequence += 1;
    const info = {
      sequence: details.sequence ?? this.#sequence,
      at: clock.now(),
      startedMs,
      bodyForm,
      keepsBodies: bodies,
      serviceName,
      replayOf: replay === null ? null : this.idOf(replay.original),
      isEdited: replay?.isEdited ?? false,
    };
    const recorder = new CaptureRecorder(info, head, captures);
    if (rules !== null) recorder.ruledBy(rules);
    captures.add(recorder);
    return recorder;
  }

  /** A rule has answered a request that these tunnels, the members of a group, would have been given. Each lists it, under one id. */
  answered(
    tunnels: Iterable<Tunnel>,
    head: Pick<RequestHead, 'text' | 'framing'>,
    startedMs: number,
    rules: CapturedRules,
    response: EdgeResponse,
  ): CaptureRecorder | null {
    let first: CaptureRecorder | null = null;
    for (const tunnel of tunnels) {
      const recorder = this.begin(tunnel, head, startedMs, 'data', { rules, sequence: first?.info.sequence });
      recorder?.answered(response, this.#options.clock.monotonic());
      first ??= recorder;
    }
    return first;
  }

  #add({ tunnelId, owner }: Tunnel): TunnelCaptures {
    const captures = new TunnelCaptures(tunnelId, owner, this);
    // A request of a tunnel that has just ended.
    if (this.#remembered.delete(tunnelId)) captures.endedMs = this.#options.clock.monotonic();
    this.#byTunnel.set(tunnelId, captures);
    return captures;
  }

  // ---- the life of tunnels ----

  tunnelAdded({ tunnelId }: Tunnel): void {
    this.#remembered.delete(tunnelId);
    const captures = this.#byTunnel.get(tunnelId);
    if (captures !== undefined) captures.endedMs = null;
  }

  tunnelRemoved({ tunnelId, owner, http }: Tunnel): void {
    if (http === null) return;
    this.waits.onTunnelEnd(tunnelId);
    const captures = this.#byTunnel.get(tunnelId);
    if (captures === undefined) this.#remember(tunnelId, { owner, isTruncated: false });
    else captures.endedMs = this.#options.clock.monotonic();
  }

  start(): void {
    this.#sweeping = this.#options.clock.setInterval(() => this.#sweep(), CAPTURE_SWEEP_MS);
  }

  stop(): void {
    this.#sweeping?.cancel();
  }

  #sweep(): void {
    const dueMs = this.#options.clock.monotonic() - CAPTURE_KEPT_AFTER_END_MS;
    for (const captures of this.#byTunnel.values()) {
      if (captures.endedMs !== null && captures.endedMs <= dueMs) captures.dropOldest(captures.size);
    }
  }

  #remember(tunnelId: string, entry: Remembered): void {
    this.#remembered.delete(tunnelId);
    this.#remembered.set(tunnelId, entry);
    if (this.#remembered.size <= CAPTURE_TUNNELS_REMEMBERED) return;
    for (const oldest of this.#remembered.keys()) {
      this.#remembered.delete(oldest);
      return;
    }
  }

  // ---- what readers see ----

  /** Of a tunnel with captures, or of one that has ended; a living one without any is known to the tunnel table only. */
  ownerOf(tunnelId: string): Owner | undefined {
    return (this.#byTunnel.get(tunnelId) ?? this.#remembered.get(tunnelId))?.owner;
  }

  list(tunnelId: string, limit: number, { before = Infinity, isWanted }: WantedCaptures = {}): CapturePage {
    const captures = this.#byTunnel.get(tunnelId);
    if (captures === undefined) {
      const isTruncated = this.#remembered.get(tunnelId)?.isTruncated ?? false;
      return { recorders: [], truncated: isTruncated, nextCursor: null };
    }
    const wanted = captures
      .newest(captures.size)
      .filter((recorder) => recorder.info.sequence < before && (isWanted?.(recorder) ?? true));
    const recorders = wanted.slice(0, limit);
    const hasMore = wanted.length > limit;
    const last = recorders.at(-1)?.info.sequence ?? 0;
    return {
      recorders,
      truncated: captures.isTruncated || hasMore,
      nextCursor: hasMore ? `${this.#options.runId}-${last.toString(36)}` : null,
    };
  }

  /**
   * Reads a page's `nextCursor`, for `before` of list(). undefined: the text is no cursor. A cursor of an earlier run of the edge is 0, which no request
   * is older than: captures do not outlive the process.
   */
  readPageCursor(cursor: string): number | undefined {
    const [, runId, sequence = ''] = /^(\w{1,32})-([0-9a-z]{1,10})$/.exec(cursor) ?? [];
    if (runId === undefined) return undefined;
    return runId === this.#options.runId ? Number.parseInt(sequence, 36) : 0;
  }

  find(tunnelId: string, requestId: string): CaptureRecorder | undefined {
    // One that waits for a way to its service may be asked for by the name it has until then.
    return this.#byTunnel
      .get(tunnelId)
      ?.find((recorder) => this.idOf(recorder) === requestId || this.#unsentId(recorder) === requestId);
  }

  /** A moment of this run, for finishedSince(). */
  cursor(): string {
    return `${this.#options.runId}-${Math.floor(this.#options.clock.monotonic())}`;
  }

  /** Those that finished at that moment or later, in this order; undefined: it is no cursor. All of them for one of another run. */
  finishedSince(tunnelId: string, cursor: string): CaptureRecorder[] | undefined {
    const [, runId, at] = /^(\w+)-(\d{1,15})$/.exec(cursor) ?? [];
    if (runId === undefined) return undefined;
    const sinceMs = runId === this.#options.runId ? Number(at) : 0;
    const finished = this.#byTunnel.get(tunnelId)?.newest(EDGE_LIMITS.CAPTURES_PER_TUNNEL) ?? [];
    return finished.filter((recorder) => finishedMs(recorder) >= sinceMs).sort((a, b) => finishedMs(a) - finishedMs(b));
  }

  /** What its client calls it, too; of one that was put on no stream, or in the frames of h2c, its client knows nothing. */
  idOf(recorder: CaptureRecorder): string {
    const { carrierTag, streamId: id, ordinal } = recorder;
    return ordinal === 0 ? this.#unsentId(recorder) : requestIdOf({ carrierTag, id }, ordinal);
  }

  #unsentId({ info }: CaptureRecorder): string {
    return `req_${this.#options.runId}${info.sequence.toString(36).padStart(6, '0')}`;
  }

  // ---- room ----

  /** After a change of a tunnel's captures, with how many bytes more, or fewer, are kept. */
  onChanged(captures: TunnelCaptures, bytes: number): void {
    const { account } = captures;
    if (bytes > 0) this.#shares.take(account, bytes);
    else this.#shares.give(account, -bytes);
    this.#rank(captures);
    if (bytes > 0) this.#makeRoom(captures);
    else if (captures.size === 0) this.#drop(captures);
  }

  /** By the oldest request of the tunnel. */
  #rank(captures: TunnelCaptures): void {
    const { account, oldest } = captures;
    let tunnels = this.#byAccount.get(account);
    if (oldest === undefined) {
      tunnels?.remove(captures);
      if (tunnels?.size === 0) this.#byAccount.delete(account);
      return;
    }
    const rank = -oldest.info.sequence;
    if (captures.rank === rank && captures.heapIndex !== NOT_RANKED) return;
    captures.rank = rank;
    if (tunnels === undefined) {
      tunnels = new Ranking();
      this.#byAccount.set(account, tunnels);
    }
    tunnels.add(captures);
  }

  #makeRoom(writer: TunnelCaptures): void {
    while (this.#shares.taken > this.#shares.limit) {
      const giver = this.#giver(writer.account);
      const isOwn = giver === writer.account && writer.isOverrun;
      const tunnel = isOwn ? writer : this.#byAccount.get(giver)?.first;
      if (tunnel === undefined || tunnel === null) return;
      tunnel.giveWay();
    }
  }

  /**
   * The account whose oldest capture makes room: the account with the most beyond its share. While every account is within its share, the writer makes
   * room. A writer with less than an even part takes from the account with the most captures, so that every account has some.
   */
  #giver(writer: string): string {
    const { mostBeyond, largest, limit } = this.#shares;
    if (mostBeyond !== null) return mostBeyond;
    return largest === null || this.#shares.of(writer) > limit / this.#byAccount.size ? writer : largest;
  }

  #drop(captures: TunnelCaptures): void {
    const { tunnelId, owner, endedMs, isTruncated } = captures;
    if (this.#byTunnel.get(tunnelId) !== captures) return;
    this.#byTunnel.delete(tunnelId);
    if (endedMs !== null) this.#remember(tunnelId, { owner, isTruncated });
  }
}

const NO_DETAILS: CaptureDetails = {};

/** On the monotonic clock; NaN, which is never later than anything: it is under way. */
const finishedMs = ({ info, durationMs }: CaptureRecorder): number => info.startedMs + (durationMs ?? Number.NaN);

/** So many may have gone from the front before the others move up: with each request it would be all of them. */
const GAP_MAX = 256;

/** The last requests of one tunnel, oldest first. */
class TunnelCaptures implements CaptureBuffer, Ranked {
  readonly tunnelId: string;
  readonly owner: Owner;
  /** The account that the bytes of this tunnel count for. Each tunnel of the operator counts as an account. */
  readonly account: string;
  rank = 0;
  heapIndex = NOT_RANKED;
  bytes = 0;
  /** On the monotonic clock; null while the tunnel lives. */
  endedMs: number | null = null;
  /** Older requests were here and had to go. */
  isTruncated = false;
  readonly #store: CaptureStore;
  /** null: it is gone. */
  readonly #recorders: (CaptureRecorder | null)[] = [];
  /** As many of them, the first ones, are gone. */
  #gap = 0;
  /** Of these a rule has answered; and their bytes. */
  #answered = 0;
  #answeredBytes = 0;

  constructor(tunnelId: string, owner: Owner, store: CaptureStore) {
    this.tunnelId = tunnelId;
    this.owner = owner;
    this.account = tenantKey(owner, tunnelId);
    this.#store = store;
  }

  get size(): number {
    return this.#recorders.length - this.#gap;
  }

  get oldest(): CaptureRecorder | undefined {
    return this.#recorders[this.#gap] ?? undefined;
  }

  /** Requests that rules have answered take more than a quarter of its bytes. */
  get isOverrun(): boolean {
    return this.#answeredBytes * 4 > this.bytes;
  }

  /** Newest first. */
  newest(limit: number): CaptureRecorder[] {
    return this.#kept().slice(-limit).reverse();
  }

  find(isIt: (recorder: CaptureRecorder) => boolean): CaptureRecorder | undefined {
    return this.#kept().find(isIt);
  }

  #kept(): CaptureRecorder[] {
    return this.#recorders.slice(this.#gap) as CaptureRecorder[];
  }

  add(recorder: CaptureRecorder): void {
    this.#recorders.push(recorder);
    this.#countAnswered(recorder, 1, recorder.keptBytes);
    if (this.#answered > CAPTURES_ANSWERED_PER_TUNNEL) this.#dropOldestAnswered();
    this.#grow(recorder.keptBytes);
  }

  #countAnswered(recorder: CaptureRecorder, count: number, bytes: number): void {
    if (!isAnsweredByRule(recorder)) return;
    this.#answered += count;
    this.#answeredBytes += bytes;
  }

  /** One of them goes: the oldest, but of strangers at the door while these have more than a quarter, which is their share of the number, too. */
  giveWay(): void {
    if (this.isOverrun) this.#dropOldestAnswered();
    else this.dropOldest(1);
  }

  /** Strangers at the door do not push out those who came in. */
  #dropOldestAnswered(): void {
    const oldest = this.#recorders.find((recorder) => recorder !== null && isAnsweredByRule(recorder));
    if (oldest === undefined || oldest === null) return;
    oldest.letGo();
    this.isTruncated = true;
    this.onDiscarded(oldest);
  }

  onGrown(recorder: CaptureRecorder, bytes: number): void {
    recorder.keptBytes += bytes;
    this.#countAnswered(recorder, 0, bytes);
    this.#grow(bytes);
  }

  onDiscarded(recorder: CaptureRecorder): void {
    const at = this.#recorders.lastIndexOf(recorder);
    if (at === -1) return;
    this.#recorders.splice(at, 1);
    this.#countAnswered(recorder, -1, -recorder.keptBytes);
    this.bytes -= recorder.keptBytes;
    this.#store.onChanged(this, -recorder.keptBytes);
  }

  onFinished(recorder: CaptureRecorder): void {
    this.#store.waits.onFinished(this.tunnelId, recorder);
  }

  #grow(bytes: number): void {
    this.bytes += bytes;
    this.#store.onChanged(this, bytes);
    while (this.size > EDGE_LIMITS.CAPTURES_PER_TUNNEL) this.dropOldest(1);
    while (this.bytes > CAPTURE_BYTES_PER_TUNNEL) this.giveWay();
  }

  dropOldest(count: number): void {
    let freed = 0;
    for (let left = count; left > 0; left -= 1) {
      const recorder = this.#recorders[this.#gap] ?? null;
      if (recorder === null) break;
      this.#recorders[this.#gap] = null;
      this.#gap += 1;
      this.#countAnswered(recorder, -1, -recorder.keptBytes);
      recorder.letGo();
      freed += recorder.keptBytes;
      this.isTruncated = true;
    }
    if (this.#gap >= GAP_MAX) {
      this.#recorders.splice(0, this.#gap);
      this.#gap = 0;
    }
    this.bytes -= freed;
    this.#store.onChanged(this, -freed);
  }
}

// Captured requests of all tunnels, in memory. Limited in number and bytes, and kept for an hour after a tunnel has closed.
import { type ChunkedForm, type EdgeResponse, type RequestHead } from '@tunnel/http1';
import { requestIdOf } from '@tunnel/protocol';
import { NOT_RANKED, type Ranked, Ranking } from '@tunnel/rules/collections';
import { FairShare } from '@tunnel/rules/rate';
import { type Owner, tenantKey } from '@tunnel/rules/tunnels';
import type { Clock, Timer } from '@tunnel/runtime';
import { EDGE_LIMITS } from '../limits.ts';
import type { TunnelWatcher } from '../routing/registry.ts';
import type { Tunnel } from '../routing/tunnel.ts';
import type { CapturedRules } from '../upstream/captured-rules.ts';
import { type CaptureBuffer, CaptureRecorder } from './recorder.ts';
import { RequestWaits } from './request-waits.ts';
import { isAnsweredByRule } from './stored-head.ts';

/**
 * Maximum kept requests of a tunnel that were answered by a rule. The separate limit keeps rejected visitors from displacing other
 * requests.
 */
const CAPTURES_ANSWERED_PER_TUNNEL = 50;
/**
 * Maximum bytes of heads and bodies of a tunnel's captured requests. The oldest requests are dropped first.
 * @limit dashboard: Captured requests per tunnel, total size | the oldest request is dropped
 */
export const CAPTURE_BYTES_PER_TUNNEL = 4 * 1024 * 1024;
/**
 * Maximum bytes of the captured requests of all tunnels. At the limit, the account with the most bytes above its `account_share` loses its
 * oldest request.
 */
export const CAPTURE_BYTES_MAX = 64 * 1024 * 1024;
/**
 * Time for which captures are kept after a tunnel has closed, so that users can still look for errors.
 * @limit dashboard: Captured requests of a closed tunnel, retention | the requests are dropped
 */
export const CAPTURE_KEPT_AFTER_END_MS = 3600 * 1000;
/**
 * Maximum remembered closed tunnels, for which the list of requests is empty instead of "unknown tunnel". The oldest are forgotten first.
 */
export const CAPTURE_TUNNELS_REMEMBERED = 20_000;
/** Interval at which expired captured requests are dropped. */
export const CAPTURE_SWEEP_MS = 10_000;

export interface CaptureStoreOptions {
  /** Whether requests are captured at all: setting in `[capture]` of server.toml. */
  readonly enabled: boolean;
  readonly bodies: boolean;
  /** Share of the capture memory for an account: setting `[limits] account_share`. */
  readonly accountShare: number;
  readonly clock: Clock;
  /** Distinguishes request ids of the current run from ids of earlier runs. */
  readonly runId: string;
}

/** Details of a captured request in addition to its head. */
export interface CaptureDetails {
  readonly rules?: CapturedRules | null;
  /** Name of the client's service. Null or undefined for the tunnel's default service. */
  readonly serviceName?: string | null;
  readonly replay?: ReplaySource | null;
  /** Sequence of the same request in another tunnel's list, so that both get the same id. */
  readonly sequence?: number | undefined;
}

/** Original of a replayed request. */
export interface ReplaySource {
  readonly original: CaptureRecorder;
  readonly isEdited: boolean;
}

export interface CapturePage {
  /** Captured requests of the page, newest first. */
  readonly recorders: readonly CaptureRecorder[];
  /** True if older captured requests exist, or existed and were dropped. */
  readonly truncated: boolean;
  /** Cursor of the next page, with older requests. Null if no older requests are kept. */
  readonly nextCursor: string | null;
}

/** Filters for a list of captured requests. Undefined filters match all requests. */
export interface WantedCaptures {
  /** Result of readPageCursor(). Only requests older than the page with that cursor are listed. */
  readonly before?: number | undefined;
  readonly isWanted?: ((recorder: CaptureRecorder) => boolean) | undefined;
}

/** A closed tunnel without captured requests, remembered for access checks. */
interface Remembered {
  readonly owner: Owner;
  readonly isTruncated: boolean;
}

export class CaptureStore implements TunnelWatcher {
  /** API callers that wait for a captured request to finish. */
  readonly waits: RequestWaits;
  readonly #options: CaptureStoreOptions;
  /** Tunnels with at least one captured request. */
  readonly #byTunnel = new Map<string, TunnelCaptures>();
  readonly #remembered = new Map<string, Remembered>();
  /** Bytes of captured requests of each account, including its closed tunnels. */
  readonly #shares: FairShare;
  /** Tunnels with captures by account; the tunnel with the oldest request comes first. */
  readonly #byAccount = new Map<string, Ranking<TunnelCaptures>>();
  #sequence = 0;
  #sweeping: Timer | null = null;

  constructor(options: CaptureStoreOptions) {
    this.#options = options;
    const limit = CAPTURE_BYTES_MAX;
    this.#shares = new FairShare({ limit, perHolder: limit * options.accountShare });
    this.waits = new RequestWaits(options.clock);
  }

  get bytes(): number {
    return this.#shares.taken;
  }

  /**
   * Starts capturing a request served by the tunnel. `startedMs` is monotonic; chunks of a chunked body are recorded in `bodyForm`. Returns
   * null if capturing is off, for the tunnel or for the server.
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
    // The details are read only after the checks above, because some are computed on access.
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

  /** Captures a request answered by a rule for all members of a group, under the same id. */
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
    // The tunnel of the captured request has just closed.
    if (this.#remembered.delete(tunnelId)) captures.endedMs = this.#options.clock.monotonic();
    this.#byTunnel.set(tunnelId, captures);
    return captures;
  }

  // ---- tunnels opening and closing ----

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

  // ---- lookups ----

  /** Returns the owner of a tunnel that has captures or has closed. Open tunnels without captures are only known to the tunnel registry. */
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
   * Parses a page's `nextCursor`, for `before` of list(). Returns undefined if the text is not a cursor. A cursor of an earlier run becomes
   * 0, which matches no request, because captures do not survive a restart.
   */
  readPageCursor(cursor: string): number | undefined {
    const [, runId, sequence = ''] = /^(\w{1,32})-([0-9a-z]{1,10})$/.exec(cursor) ?? [];
    if (runId === undefined) return undefined;
    return runId === this.#options.runId ? Number.parseInt(sequence, 36) : 0;
  }

  find(tunnelId: string, requestId: string): CaptureRecorder | undefined {
    // A request waiting for a connection to its service can be looked up by its temporary id.
    return this.#byTunnel
      .get(tunnelId)
      ?.find((recorder) => this.idOf(recorder) === requestId || this.#unsentId(recorder) === requestId);
  }

  /** Returns a cursor for the current moment, to list requests that finish later with finishedSince(). */
  cursor(): string {
    return `${this.#options.runId}-${Math.floor(this.#options.clock.monotonic())}`;
  }

  /**
   * Returns the requests that finished at or after the cursor, in order of finishing, or undefined if the text is not a cursor. A cursor of
   * another run matches all requests.
   */
  finishedSince(tunnelId: string, cursor: string): CaptureRecorder[] | undefined {
    const [, runId, at] = /^(\w+)-(\d{1,15})$/.exec(cursor) ?? [];
    if (runId === undefined) return undefined;
    const sinceMs = runId === this.#options.runId ? Number(at) : 0;
    const finished = this.#byTunnel.get(tunnelId)?.newest(EDGE_LIMITS.CAPTURES_PER_TUNNEL) ?? [];
    return finished.filter((recorder) => finishedMs(recorder) >= sinceMs).sort((a, b) => finishedMs(a) - finishedMs(b));
  }

  /**
   * Returns the request id, which the client uses as well. Requests without a stream, and h2c requests, have an id unknown to the client.
   */
  idOf(recorder: CaptureRecorder): string {
    const { carrierTag, streamId: id, ordinal } = recorder;
    return ordinal === 0 ? this.#unsentId(recorder) : requestIdOf({ carrierTag, id }, ordinal);
  }

  #unsentId({ info }: CaptureRecorder): string {
    return `req_${this.#options.runId}${info.sequence.toString(36).padStart(6, '0')}`;
  }

  // ---- limits ----

  /** Called after a change of a tunnel's captures. `bytes` is the change in kept bytes. */
  onChanged(captures: TunnelCaptures, bytes: number): void {
    const { account } = captures;
    if (bytes > 0) this.#shares.take(account, bytes);
    else this.#shares.give(account, -bytes);
    // More bytes change neither the oldest request of the tunnel nor its rank.
    if (bytes <= 0 || captures.heapIndex === NOT_RANKED) this.#rank(captures);
    if (bytes > 0) this.#makeRoom(captures);
    else if (captures.size === 0) this.#drop(captures);
  }

  /** Ranks a tunnel of an account by its oldest captured request. */
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
   * Returns the account that loses its oldest capture: the account with the most bytes above its share. While every account is within its
   * share, the writer loses its oldest. A writer with less than an equal part takes from the largest account, so that every account keeps
   * some captures.
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

/**
 * Returns the time at which a request finished, in monotonic milliseconds. NaN while the request is in progress, so that no comparison
 * matches.
 */
const finishedMs = ({ info, durationMs }: CaptureRecorder): number => info.startedMs + (durationMs ?? Number.NaN);

/** Number of removed entries at the front before the array is compacted. Compacting at each request would move all entries. */
const GAP_MAX = 256;

/** Most recent captured requests of a tunnel, oldest first. */
class TunnelCaptures implements CaptureBuffer, Ranked {
  readonly tunnelId: string;
  readonly owner: Owner;
  /** Account charged for the tunnel's bytes. Each tunnel of the operator counts as a separate account. */
  readonly account: string;
  rank = 0;
  heapIndex = NOT_RANKED;
  bytes = 0;
  /** Time at which the tunnel closed, in monotonic milliseconds. Null while the tunnel is open. */
  endedMs: number | null = null;
  /** True if older captured requests of the tunnel were dropped. */
  isTruncated = false;
  readonly #store: CaptureStore;
  /** Captured requests of the tunnel, oldest first. Removed entries are null. */
  readonly #recorders: (CaptureRecorder | null)[] = [];
  /** Number of removed entries at the front of the list of captured requests. */
  #gap = 0;
  /** Number and bytes of captured requests that a rule answered. */
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

  /** Whether requests answered by rules take more than a quarter of the bytes. */
  get isOverrun(): boolean {
    return this.#answeredBytes * 4 > this.bytes;
  }

  /** Returns the most recent captured requests of the tunnel, newest first. */
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

  /**
   * Drops a request: the oldest answered by a rule while such requests take more than a quarter of the bytes (as of the number), otherwise
   * the oldest.
   */
  giveWay(): void {
    if (this.isOverrun) this.#dropOldestAnswered();
    else this.dropOldest(1);
  }

  /** Drops the oldest request answered by a rule, so that rejected visitors cannot displace served requests. */
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

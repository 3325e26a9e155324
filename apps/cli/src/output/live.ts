// Output for people at a terminal: a small block redrawn in place, and lines about events above the block.
import type { Client, PeerConnection, SessionFacts, StatusEvent, Tunnel } from '@tunnel/client';
import type { Fault } from '@tunnel/errors';
import type { Timer } from '@tunnel/runtime';
import type { ReloadOutcome } from '@tunnel/tunnel-spec';
import pc from 'picocolors';
import type { ExitCode } from '../io/exit-codes.ts';
import type { Io } from '../io/io.ts';
import { drainText, type LineIo, LineOutput, moreRequestsText, nameWidthOf, requestLine } from './lines.ts';
import { type BlockFacts, blockLines, type RunState } from './live-block.ts';
import type { Output, RemovedTunnel, ShownRequest } from './output.ts';
import { RedrawnLines, type StayingLine, widthOf } from './redrawn-lines.ts';
import type { Colours } from './text.ts';

/** Interval of redraws: at most four times a second. */
const REDRAW_MS = 250;
/** Maximum request lines per redraw, because people do not read more lines. */
const REQUEST_LINES_MAX = 40;

const SHOWN_BY_BLOCK: ReadonlySet<StatusEvent['type']> = new Set(['connected', 'datagrams', 'path', 'peer-ready']);

export class LiveOutput implements Output {
  readonly #io: Pick<Io, 'stdout' | 'stderr' | 'clock' | 'env'>;
  readonly #server: string;
  readonly #lines: LineOutput;
  readonly #block: RedrawnLines;
  readonly #colours: Colours;
  readonly #timer: Timer;
  readonly #tunnels = new InPlace<Tunnel>();
  readonly #connections = new InPlace<PeerConnection>();
  #state: RunState = 'connecting';
  #since: number | null = null;
  #client: Pick<Client, 'session'> | null = null;
  /** The last session. Still shown while the connection is lost, because the account stays the same. */
  #session: SessionFacts | null = null;
  #inspector: BlockFacts['inspector'] = null;
  /** Request lines queued for the next redraw. */
  #requests: StayingLine[] = [];
  #unshown = 0;
  #draining = '';

  constructor(io: Pick<Io, 'stdout' | 'stderr' | 'clock' | 'env'> & LineIo, server: string) {
    this.#io = io;
    this.#server = server;
    const block = new RedrawnLines(io.stdout, { mayWrap: true });
    this.#block = block;
    this.#lines = new LineOutput({
      clock: io.clock,
      platformUrl: io.platformUrl,
      stdout: {
        write: (text) => {
          io.stdout.write(text);
          block.wrote(text.replace(/\n$/, ''));
        },
      },
      // stderr can lead to another place than the screen, so no earlier lines are printed again after a write to stderr.
      stderr: {
        write: (text) => {
          io.stderr.write(text);
          block.forget();
        },
      },
    });
    this.#colours = pc.createColors((io.env['NO_COLOR'] ?? '') === '');
    this.#timer = io.clock.setInterval(() => {
      // A terminal that has not read the last redraw gets no further one, so that output does not pile up.
      if ((io.stdout.writableLength ?? 0) === 0) this.#draw();
    }, REDRAW_MS);
  }

  onClient(client: Pick<Client, 'session'>): void {
    this.#client = client;
  }

  onStatus(event: StatusEvent): void {
    if (event.type === 'connected' || event.type === 'reconnected') {
      this.#state = 'connected';
      this.#since ??= this.#io.clock.monotonic();
    }
    if (event.type === 'reconnecting') this.#state = this.#since === null ? 'connecting' : 'reconnecting';
    if (event.type === 'closing') this.#state = 'stopping';
    if (event.type === 'tunnel-opened') this.#tunnels.add(event.tunnel);
    if (event.type === 'tunnel-error' && event.final) this.#tunnels.delete(event.tunnel);
    if (event.type === 'peer-ready') this.#connections.add(event.connection);
    if (event.type === 'peer-error' && event.final) this.#connections.delete(event.connection);
    // The block shows the state of tunnels. Only an event that the block cannot show gets a line.
    if (SHOWN_BY_BLOCK.has(event.type)) return;
    if (event.type === 'tunnel-opened' && event.tunnel.warnings.length === 0) return;
    this.#above(() => this.#lines.onStatus(event));
  }

  /** Queues the line of a request for the next redraw, so that a busy tunnel does not make the block flicker. */
  onRequest(event: ShownRequest): void {
    if (this.#requests.length === REQUEST_LINES_MAX) {
      this.#unshown += 1;
      return;
    }
    const isNamed = this.#tunnels.size > 1;
    const nameWidth = isNamed ? this.#tunnels.nameWidth : 0;
    this.#requests.push((width) => requestLine(event, { width, named: isNamed, nameWidth, colours: this.#colours }));
  }

  onInspector(url: string | null): void {
    this.#inspector = { url };
  }

  onNotice(text: string, channel: 'stdout' | 'stderr'): void {
    this.#above(() => this.#lines.onNotice(text, channel));
  }

  onReloading(): void {}

  onReloaded(outcome: ReloadOutcome): void {
    this.#above(() => this.#lines.onReloaded(outcome));
  }

  onReloadRefused(fault: Fault): void {
    this.#above(() => this.#lines.onReloadRefused(fault));
  }

  onRemoved(removed: RemovedTunnel): void {
    this.#tunnels.remove(removed.name);
    this.#connections.remove(removed.name);
    this.#above(() => this.#lines.onRemoved(removed));
  }

  onFailure(fault: Fault): void {
    this.#above(() => this.#lines.onFailure(fault));
  }

  /** Shows the open connections in the block while the client waits for them. Most runs have no open connection, and end immediately. */
  onDrain(open: number, seconds: number): void {
    this.#draining = drainText(open, seconds);
  }

  /** Leaves the last block on the screen. If no tunnel was ever open, the block is erased, because the reason is already printed above. */
  onEnd(_code: ExitCode, _tunnels: readonly Tunnel[]): void {
    this.#timer.cancel();
    this.#state = 'stopped';
    if (this.#tunnels.size + this.#connections.size > 0) this.#draw();
    else this.#above(() => {});
  }

  /** Prints lines above the block. The block is erased first, and the next redraw shows the block below the lines. */
  #above(print: () => void): void {
    this.#block.erase();
    this.#block.draw([], this.#takeRequests());
    print();
  }

  #takeRequests(): StayingLine[] {
    const unshown = this.#unshown;
    if (unshown > 0) this.#requests.push(() => moreRequestsText(unshown));
    this.#unshown = 0;
    return this.#requests.splice(0);
  }

  #draw(): void {
    this.#session = this.#client?.session ?? this.#session;
    const look = { width: widthOf(this.#io.stdout), colours: this.#colours };
    this.#block.draw(blockLines(this.#facts(), look), this.#takeRequests());
  }

  #facts(): BlockFacts {
    return {
      server: this.#server,
      state: this.#state,
      upMs: this.#since === null ? null : this.#io.clock.monotonic() - this.#since,
      draining: this.#draining,
      session: this.#session,
      inspector: this.#inspector,
      tunnels: this.#tunnels.all,
      connections: this.#connections.all,
    };
  }
}

/** Maximum names of closed tunnels that keep their place in the block. */
const CLOSED_NAMES_MAX = 1000;

/** Open tunnels or peer connections in the order in which their names first appeared. A tunnel reopened by a reload keeps its place. */
class InPlace<T extends { readonly name: string }> {
  /** Entries of the block by tunnel name. Null if no entry with the name is open. */
  readonly #byName = new Map<string, T | null>();
  /** Number of tunnels that have closed since names of closed tunnels were last forgotten. */
  #closed = 0;
  /** The list and the name width are computed on demand, because thousands of tunnels can open one after another. */
  #all: readonly T[] | null = null;
  #nameWidth: number | null = null;

  get all(): readonly T[] {
    this.#all ??= [...this.#byName.values()].filter((entry) => entry !== null);
    return this.#all;
  }

  get size(): number {
    return this.all.length;
  }

  /** Width of the longest tunnel name in columns. */
  get nameWidth(): number {
    this.#nameWidth ??= nameWidthOf(this.all.map(({ name }) => name));
    return this.#nameWidth;
  }

  /** Adds an open tunnel or peer connection. Replaces an earlier entry with the same name. */
  add(entry: T): void {
    this.#byName.set(entry.name, entry);
    this.#changed();
  }

  delete(entry: T): void {
    if (this.#byName.get(entry.name) === entry) this.remove(entry.name);
  }

  remove(name: string): void {
    if (!this.#byName.has(name)) return;
    this.#byName.set(name, null);
    this.#closed += 1;
    if (this.#closed > CLOSED_NAMES_MAX) this.#forgetClosed();
    this.#changed();
  }

  #forgetClosed(): void {
    this.#closed = 0;
    for (const [name, entry] of this.#byName) if (entry === null) this.#byName.delete(name);
  }

  #changed(): void {
    this.#all = null;
    this.#nameWidth = null;
  }
}

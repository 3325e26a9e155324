// For people at a terminal: a small block that is drawn again in place, and lines above it for what happens.
import type { PeerConnection, ReloadOutcome, RequestEvent, StatusEvent, Tunnel } from '@tunnel/client';
import type { Fault } from '@tunnel/errors';
import type { Timer } from '@tunnel/runtime';
import pc from 'picocolors';
import type { ExitCode } from '../exit-codes.ts';
import type { Io } from '../io.ts';
import {
  countsText,
  groupText,
  healthMark,
  healthWord,
  inspectorText,
  LineOutput,
  requestLine,
  routeText,
  trafficText,
  uptimeText,
  wayText,
} from './lines.ts';
import type { Output, RemovedTunnel } from './output.ts';
import { connectionText, pathText, peerText } from './peers.ts';
import type { Colours } from './text.ts';

/** At most four times a second. */
const REDRAW_MS = 250;
/** Requests shown each time; nobody reads more than that. */
const REQUEST_LINES_MAX = 40;

const SHOWN_BY_BLOCK: ReadonlySet<StatusEvent['type']> = new Set(['connected', 'datagrams', 'path', 'peer-ready']);
/** Peers of one tunnel that have a line; nobody reads more than that. */
const PEER_LINES_MAX = 10;

export class LiveOutput implements Output {
  readonly #io: Pick<Io, 'stdout' | 'stderr' | 'clock' | 'env'>;
  readonly #server: string;
  readonly #lines: LineOutput;
  readonly #colours: Colours;
  readonly #timer: Timer;
  readonly #tunnels = new Set<Tunnel>();
  readonly #connections = new Set<PeerConnection>();
  #state = 'connecting';
  #since: number | null = null;
  #drawn: readonly string[] = [];
  #inspector: string | null = null;
  /** Lines that wait for the next drawing. */
  #requests: string[] = [];
  #unshown = 0;

  constructor(io: Pick<Io, 'stdout' | 'stderr' | 'clock' | 'env'>, server: string) {
    this.#io = io;
    this.#server = server;
    this.#lines = new LineOutput(io);
    this.#colours = pc.createColors((io.env['NO_COLOR'] ?? '') === '');
    this.#timer = io.clock.setInterval(() => this.#draw(), REDRAW_MS);
  }

  onStatus(event: StatusEvent): void {
    if (event.type === 'connected' || event.type === 'reconnected') {
      this.#state = 'connected';
      this.#since ??= this.#io.clock.monotonic();
    }
    if (event.type === 'reconnecting') this.#state = this.#since === null ? 'connecting' : 'reconnecting';
    if (event.type === 'closing') this.#state = 'stopping';
    if (event.type === 'tunnel-opened') this.#addTunnel(event.tunnel);
    if (event.type === 'tunnel-error' && event.final) this.#tunnels.delete(event.tunnel);
    if (event.type === 'peer-ready') this.#connections.add(event.connection);
    if (event.type === 'peer-error' && event.final) this.#connections.delete(event.connection);
    // The block says who is where; only what it cannot say gets a line.
    if (SHOWN_BY_BLOCK.has(event.type)) return;
    if (event.type === 'tunnel-opened' && event.tunnel.warnings.length === 0) return;
    this.#above(() => this.#lines.onStatus(event));
  }

  /** Shown with the next drawing: a busy tunnel must not make the block flicker. */
  onRequest(event: RequestEvent): void {
    if (event.type !== 'request-finished') return;
    if (this.#requests.length === REQUEST_LINES_MAX) {
      this.#unshown += 1;
      return;
    }
    const shape = { width: this.#width(), named: this.#tunnels.size > 1, colours: this.#colours };
    this.#requests.push(requestLine(event, shape));
  }

  onInspector(url: string | null): void {
    if (url === null) this.#above(() => this.#lines.onInspector(url));
    else this.#inspector = inspectorText(url);
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

  /** It may be another one than before under the same name. */
  #addTunnel(tunnel: Tunnel): void {
    this.#forgetTunnel(tunnel.name);
    this.#tunnels.add(tunnel);
  }

  #forgetTunnel(name: string): void {
    for (const known of this.#tunnels) if (known.name === name) this.#tunnels.delete(known);
  }

  onRemoved(removed: RemovedTunnel): void {
    this.#forgetTunnel(removed.name);
    for (const known of this.#connections) if (known.name === removed.name) this.#connections.delete(known);
    this.#above(() => this.#lines.onRemoved(removed));
  }

  onFailure(fault: Fault): void {
    this.#above(() => this.#lines.onFailure(fault));
  }

  onDrain(open: number, seconds: number): void {
    this.#above(() => this.#lines.onDrain(open, seconds));
  }

  /** The last block stays on the screen. */
  onEnd(_code: ExitCode, _tunnels: readonly Tunnel[]): void {
    this.#timer.cancel();
    this.#state = 'stopped';
    if (this.#since !== null) this.#draw();
    else this.#erase();
  }

  #above(print: () => void): void {
    this.#erase();
    this.#printRequests();
    print();
  }

  #printRequests(): void {
    if (this.#unshown > 0) this.#requests.push(`… and ${this.#unshown} more requests`);
    this.#unshown = 0;
    for (const line of this.#requests.splice(0)) this.#io.stdout.write(`${line}\n`);
  }

  /** A line that wraps could not be erased by counting lines. */
  #width(): number {
    return Math.max(20, (this.#io.stdout.columns || 80) - 1);
  }

  #block(): string[] {
    const up = this.#since === null ? '' : `, up ${uptimeText(this.#io.clock.monotonic() - this.#since)}`;
    const lines = [`${this.#server}: ${this.#state}${up}`];
    for (const tunnel of this.#tunnels) {
      const [mark, word] = [
        healthMark(tunnel),
        tunnel.datagrams === null ? healthWord(tunnel) : wayText(tunnel.datagrams),
      ];
      const name = mark === '' ? tunnel.name : `${mark} ${tunnel.name}`;
      const away = tunnel.state === 'away' ? '  (away)' : '';
      lines.push(`  ${name}  ${routeText(tunnel)}${groupText(tunnel)}${away}`);
      lines.push(`    ${word === '' ? '' : `${word}; `}${countsText(tunnel)}`);
      const { peers } = tunnel;
      lines.push(...peers.slice(0, PEER_LINES_MAX).map((peer) => `    ${peerText(peer)}`));
      if (peers.length > PEER_LINES_MAX) lines.push(`    and ${peers.length - PEER_LINES_MAX} more peers`);
    }
    for (const connection of this.#connections) {
      lines.push(`  ${connection.name}  ${connectionText(connection)}${connection.state === 'away' ? '  (away)' : ''}`);
      lines.push(`    ${pathText(connection)}; ${trafficText(connection.counts)}`);
    }
    if (this.#inspector !== null) lines.push(`  ${this.#inspector}`);
    const width = this.#width();
    return lines.map((line) => (line.length > width ? `${line.slice(0, width - 1)}…` : line));
  }

  #draw(): void {
    const block = this.#block();
    if (this.#requests.length > 0) this.#above(() => {});
    if (block.length === this.#drawn.length && block.every((line, index) => line === this.#drawn[index])) return;
    this.#erase();
    this.#drawn = block;
    this.#io.stdout.write(`${block.map((line, index) => this.#paint(line, index)).join('\n')}\n`);
  }

  #paint(line: string, index: number): string {
    const { bold, dim, green, red, yellow } = this.#colours;
    if (index === 0) return this.#state === 'connected' ? green(line) : yellow(line);
    if (line.startsWith('  ✗ ')) return red(line);
    return line.startsWith('    ') ? dim(line) : bold(line);
  }

  #erase(): void {
    if (this.#drawn.length > 0) this.#io.stdout.write(`\u001b[${this.#drawn.length}A\u001b[J`);
    this.#drawn = [];
  }
}

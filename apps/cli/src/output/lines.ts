// For people without a terminal (a log, a pipe): one plain line for each thing that happens; errors on the error channel.
import type { RequestEvent, StatusEvent, Tunnel } from '@tunnel/client';
import type { Fault } from '@tunnel/errors';
import type { ExitCode } from '../exit-codes.ts';
import type { Io } from '../io.ts';
import { oneLine, problemLines } from '../problem-report.ts';
import type { Output } from './output.ts';
import { requestLine } from './request-line.ts';
import { countsText, eventLine, inspectorText } from './words.ts';

export class LineOutput implements Output {
  readonly #io: Pick<Io, 'stdout' | 'stderr'>;
  readonly #names = new Set<string>();

  constructor(io: Pick<Io, 'stdout' | 'stderr'>) {
    this.#io = io;
  }

  onStatus(event: StatusEvent): void {
    if (event.type === 'tunnel-error' || event.type === 'local-error') this.#complain(event.tunnel, event.fault);
    else {
      const line = eventLine(event);
      if (line !== undefined) this.#io.stdout.write(`${line}\n`);
    }
  }

  onRequest(event: RequestEvent): void {
    this.#names.add(event.tunnel.name);
    if (event.type !== 'request-finished') return;
    this.#io.stdout.write(`${requestLine(event, { named: this.#names.size > 1 })}\n`);
  }

  onInspector(url: string | null): void {
    this.#io.stdout.write(`${inspectorText(url)}\n`);
  }

  onFailure(fault: Fault): void {
    this.#io.stderr.write(`${problemLines(fault).join('\n')}\n`);
  }

  onDrain(open: number, seconds: number): void {
    if (open > 0) this.#io.stdout.write(`stopping: ${open} connections have ${seconds} s to finish\n`);
  }

  onEnd(_code: ExitCode, tunnels: readonly Tunnel[]): void {
    for (const tunnel of tunnels) this.#io.stdout.write(`${tunnel.name}: ${countsText(tunnel)}\n`);
  }

  #complain(tunnel: Tunnel, fault: Fault): void {
    const [what = '', ...hints] = problemLines(fault);
    const named = what.replace(/^tunnel: /, `tunnel: ${oneLine(tunnel.name)}: `);
    this.#io.stderr.write(`${[named, ...hints].join('\n')}\n`);
  }
}

// For programs: one event a line on stdout, with stable names and fields.
import type { StatusEvent, Tunnel } from '@tunnel/client';
import type { Fault } from '@tunnel/errors';
import type { ExitCode } from '../exit-codes.ts';
import type { Io } from '../io.ts';
import { hintOf } from '../problem-report.ts';
import { LineOutput } from './lines.ts';
import type { Output } from './output.ts';

export class JsonOutput implements Output {
  readonly #io: Pick<Io, 'stdout' | 'stderr' | 'clock'>;
  /** Errors are for people too, on their own channel. */
  readonly #errors: LineOutput;

  constructor(io: Pick<Io, 'stdout' | 'stderr' | 'clock'>) {
    this.#io = io;
    this.#errors = new LineOutput(io);
  }

  onStatus(event: StatusEvent): void {
    switch (event.type) {
      case 'tunnel-opened':
        return this.#write('ready', readyFields(event.tunnel));
      case 'tunnel-moved':
        return this.#write('ready', { ...readyFields(event.tunnel), previous_url: event.previousUrl });
      case 'reconnecting':
        return this.#write('reconnecting', {
          attempt: event.attempt,
          delay_ms: event.delayMs,
          reason: event.reason,
          planned: event.planned,
        });
      case 'reconnected':
        return this.#write('reconnected', { resumed: event.resumed });
      case 'tunnel-error':
      case 'local-error':
        this.#errors.onStatus(event);
        return this.#write('error', {
          ...errorFields(event.fault),
          name: event.tunnel.name,
          tunnel_id: event.tunnel.tunnelId === '' ? null : event.tunnel.tunnelId,
          fatal: false,
        });
      default:
        return;
    }
  }

  onFailure(fault: Fault): void {
    this.#errors.onFailure(fault);
    this.#write('error', { ...errorFields(fault), fatal: true });
  }

  onDrain(): void {}

  onEnd(code: ExitCode): void {
    this.#write('closed', { exit_code: code });
  }

  #write(event: string, fields: Readonly<Record<string, unknown>>): void {
    const at = new Date(this.#io.clock.now()).toISOString();
    this.#io.stdout.write(`${JSON.stringify({ event, at, ...fields })}\n`);
  }
}

const readyFields = (tunnel: Tunnel) => ({
  public_url: tunnel.publicUrl,
  tunnel_id: tunnel.tunnelId,
  name: tunnel.name,
  protocol: tunnel.protocol,
  assigned_port: tunnel.assignedPort,
  local: `${tunnel.localHost}:${tunnel.localPort}`,
  warnings: tunnel.warnings,
});

const errorFields = (fault: Fault) => ({ code: fault.code, message: fault.message, next: hintOf(fault) });

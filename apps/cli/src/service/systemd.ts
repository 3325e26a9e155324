// systemd, controlled by the programs systemctl and journalctl, for the system or for this user.
import { spawn } from 'node:child_process';
import { Fault } from '@tunnel/errors';
import type { Io } from '../io/io.ts';
import { oneLine } from '../io/problem-report.ts';

/** Maximum characters kept of a systemd program's output, counted from its end, for the error message. */
const SERVICE_OUTPUT_MAX_CHARS = 64 * 1024;

interface ProgramEnd {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export type ServiceKind = 'user' | 'system';

export class Systemd {
  readonly #kind: ServiceKind;
  readonly #io: Pick<Io, 'env' | 'stdout' | 'stderr'>;

  constructor(kind: ServiceKind, io: Pick<Io, 'env' | 'stdout' | 'stderr'>) {
    this.#kind = kind;
    this.#io = io;
  }

  /** Throws a Fault if systemd is not available. */
  async ensureRunning(): Promise<void> {
    const { code, err } = await this.#run('systemctl', ['show', '--property=Version']);
    if (code === 0) return;
    const whose = this.#kind === 'user' ? 'the systemd user manager is not running' : 'systemd is not running';
    throw refused(`${whose} (${firstLine(err)})`);
  }

  async call(...args: string[]): Promise<void> {
    const { code, err } = await this.#run('systemctl', args);
    if (code !== 0) throw refused(`systemctl ${args.join(' ')} failed: ${firstLine(err) || `exit ${code}`}`);
  }

  /** Starts a unit. `late` means that the start takes longer than `withinMs` and continues in the background. */
  async start(verb: 'start' | 'restart', unit: string, withinMs: number): Promise<'ready' | 'failed' | 'late'> {
    const { code } = await this.#run('systemctl', [verb, unit], { withinMs });
    if (code === LATE) return 'late';
    return code === 0 ? 'ready' : 'failed';
  }

  /** Clears a failed state of the unit. */
  async resetFailed(unit: string): Promise<void> {
    await this.#run('systemctl', ['reset-failed', unit]);
  }

  async isActive(unit: string): Promise<boolean> {
    return (await this.#run('systemctl', ['is-active', '--quiet', unit])).code === 0;
  }

  /** Prints the status of a unit directly to stdout. */
  async showStatus(unit: string): Promise<void> {
    await this.#run('systemctl', ['status', '--no-pager', '--lines=0', unit], { isShown: true });
  }

  async showLogs(unit: string, { lines, follow }: { readonly lines: number; readonly follow: boolean }): Promise<void> {
    const which = this.#kind === 'user' ? '--user-unit' : '--unit';
    const args = [which, unit, '--no-pager', '--lines', String(lines), ...(follow ? ['--follow'] : [])];
    const { code, err } = await this.#run('journalctl', args, { isShown: true });
    if (code !== 0) throw refused(`journalctl failed: ${firstLine(err) || `exit ${code}`}`);
  }

  #run(
    program: 'systemctl' | 'journalctl',
    args: readonly string[],
    { withinMs, isShown = false }: { readonly withinMs?: number; readonly isShown?: boolean } = {},
  ): Promise<ProgramEnd> {
    const own = this.#kind === 'user' && program === 'systemctl' ? ['--user'] : [];
    const child = spawn(program, [...own, ...args], {
      env: { ...this.#io.env, SYSTEMD_COLORS: '0', SYSTEMD_PAGER: '' },
      stdio: ['ignore', 'pipe', 'pipe'],
      ...(withinMs === undefined ? {} : { timeout: withinMs, killSignal: 'SIGTERM' }),
    });
    let out = '';
    let err = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      if (isShown) this.#io.stdout.write(text);
      else out = (out + text).slice(-SERVICE_OUTPUT_MAX_CHARS);
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      err = (err + text).slice(-SERVICE_OUTPUT_MAX_CHARS);
    });
    return new Promise((resolve, reject) => {
      child.once('error', ({ code, message }: NodeJS.ErrnoException) =>
        reject(refused(code === 'ENOENT' ? `systemd is not installed: ${program} was not found` : message)),
      );
      child.once('close', (code) => resolve({ code: code ?? LATE, out, err }));
    });
  }
}

/** Exit code of a systemd program ended by its timeout. */
const LATE = -1;

const refused = (reason: string): Fault => new Fault('CLIENT_SERVICE', { reason: oneLine(reason) });

const firstLine = (text: string): string => oneLine(text.trim().split('\n')[0] ?? '').replace(/\.$/, '');

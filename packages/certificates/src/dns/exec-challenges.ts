// The operator's own program sets the records of challenges: PROGRAM set|clear NAME VALUE. No shell reads the arguments; it has a minute, and what it
// prints is only shown when it fails, cut short and without secrets.
import { spawn } from 'node:child_process';
import { Fault } from '@tunnel/errors';
import { type Clock, maskText } from '@tunnel/runtime';
import { type DnsChallenges, isTextSeen } from './dns-challenges.ts';
import type { DnsLookups } from './lookups.ts';

/**
 * how long the program of `[acme] dns_exec` may take
 * @limit operator: Program of `[acme] dns_exec`, running time | the program is stopped and the order fails
 */
const HOOK_TIMEOUT_MS = 60_000;
/** after it has ended: output of it that is still on the way, or a pipe that a program of its own holds */
const HOOK_DRAIN_MS = 500;
/** of its output, in an error */
const HOOK_OUTPUT_MAX_BYTES = 1024;
/** of its environment: a variable that is named like a secret and has at least so many characters is masked in its output */
const HOOK_SECRET_MIN_CHARS = 6;

export interface ExecChallengesOptions {
  /** `[acme] dns_exec`. */
  readonly program: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly lookups: DnsLookups;
  readonly clock: Clock;
}

type Action = 'set' | 'clear';

/** Our own settings, which hold secrets that are none of the program's business. */
const OWN_VARIABLE = /^TUNNEL_/;
const SECRET_VARIABLE = /TOKEN|SECRET|PASSWORD|PASSWD|KEY|CREDENTIAL|AUTH/i;
const MASK = '[secret]';
const hasGroups = process.platform !== 'win32';

export class ExecChallenges implements DnsChallenges {
  readonly #options: ExecChallengesOptions;
  readonly #running = new Set<number>();

  constructor(options: ExecChallengesOptions) {
    this.#options = options;
  }

  set(name: string, value: string): Promise<void> {
    return this.#run('set', name, value);
  }

  clear(name: string, value: string): Promise<void> {
    return this.#run('clear', name, value);
  }

  isSeen(name: string, value: string): Promise<boolean> {
    return isTextSeen(this.#options.lookups, name, value);
  }

  /** Programs that run now are ended, with all that they started: nobody would wait for them any more. */
  end(): void {
    for (const pid of this.#running) endGroup(pid);
  }

  #run(action: Action, name: string, value: string): Promise<void> {
    const { program, clock } = this.#options;
    const env = Object.fromEntries(Object.entries(this.#options.env).filter(([key]) => !OWN_VARIABLE.test(key)));
    return new Promise((resolve, reject) => {
      const outputs = [new OutputHead(), new OutputHead()] as const;
      // A group of its own, so that what it has started ends with it.
      const child = spawn(program, [action, name, value], {
        env,
        stdio: ['ignore', 'pipe', 'pipe'],
        shell: false,
        detached: hasGroups,
        windowsHide: true,
      });
      if (child.pid !== undefined) this.#running.add(child.pid);
      let problem: string | null = null;
      let timer = clock.setTimeout(() => {
        problem = `timeout after ${HOOK_TIMEOUT_MS / 1000} s`;
        endGroup(child.pid);
      }, HOOK_TIMEOUT_MS);
      const end = (): void => {
        timer.cancel();
        child.stdout.destroy();
        child.stderr.destroy();
        if (problem === null) return resolve();
        const said = shownOutput(outputs, secretsOf(env));
        const reason = said === '' ? problem : `${problem}: ${said}`;
        reject(new Fault('DNS_HOOK_FAILED', { action, name, reason }));
      };
      child.stdout.on('data', (chunk: Buffer) => outputs[0].push(chunk));
      child.stderr.on('data', (chunk: Buffer) => outputs[1].push(chunk));
      child.once('error', (error: NodeJS.ErrnoException) => {
        // Also told when a signal could not be sent; then it goes on.
        if (child.pid !== undefined) return;
        problem = startProblem(program, error);
        end();
      });
      child.once('exit', (code, signal) => {
        problem ??= code === 0 ? null : endOf(code, signal);
        endGroup(child.pid);
        if (child.pid !== undefined) this.#running.delete(child.pid);
        timer.cancel();
        timer = clock.setTimeout(end, HOOK_DRAIN_MS);
      });
      child.once('close', () => {
        if (child.pid !== undefined) end();
      });
    });
  }
}

const endOf = (code: number | null, signal: NodeJS.Signals | null): string =>
  signal === null ? `exit code ${code}` : `killed by ${signal}`;

const startProblem = (program: string, { code, message }: NodeJS.ErrnoException): string => {
  if (code === 'ENOENT') return `program not found: ${program}`;
  return code === 'EACCES' ? `${program} is not executable` : message;
};

const endGroup = (pid: number | undefined): void => {
  if (pid === undefined) return;
  try {
    process.kill(hasGroups ? -pid : pid, 'SIGKILL');
  } catch {
    // Nobody is left in it.
  }
};

/** The beginning of what was said; the rest is read and left out, so that the program does not wait for us. */
class OutputHead {
  readonly #chunks: Buffer[] = [];
  #room: number = HOOK_OUTPUT_MAX_BYTES;

  push(chunk: Buffer): void {
    if (this.#room <= 0) return;
    this.#chunks.push(Buffer.from(chunk.subarray(0, this.#room)));
    this.#room -= chunk.length;
  }

  /** Where it was cut, the beginning of a secret may be left, which nothing would know as one. */
  text(secrets: readonly string[]): string {
    const text = Buffer.concat(this.#chunks).toString('utf8');
    if (this.#room >= 0) return text;
    const lost = Math.max(0, ...secrets.map((secret) => overlap(text, secret)));
    return text.slice(0, text.length - lost);
  }
}

/** How many characters at the end of the text are the beginning of the secret, and not all of it. */
const overlap = (text: string, secret: string): number => {
  for (let length = Math.min(text.length, secret.length - 1); length > 0; length -= 1) {
    if (text.endsWith(secret.slice(0, length))) return length;
  }
  return 0;
};

/** Its secrets come by its environment mostly. The longer first: one may be a part of another. */
const secretsOf = (env: Readonly<Record<string, string | undefined>>): readonly string[] =>
  Object.entries(env)
    .flatMap(([key, value = '']) => (SECRET_VARIABLE.test(key) && value.length >= HOOK_SECRET_MIN_CHARS ? [value] : []))
    .toSorted((a, b) => b.length - a.length);

/** What looks like a secret is masked as in our logs. One line, since it goes into one. */
const shownOutput = (outputs: readonly OutputHead[], secrets: readonly string[]): string => {
  const text = outputs.map((output) => output.text(secrets)).join(' ');
  const masked = secrets.reduce((rest, secret) => rest.replaceAll(secret, MASK), text);
  const line = maskText(masked)
    .replace(/[\p{C}\s]+/gu, ' ')
    .trim();
  return Buffer.from(line)
    .subarray(0, HOOK_OUTPUT_MAX_BYTES)
    .toString('utf8')
    .replace(/\ufffd$/, '');
};

// Sets challenge records with the operator's program: PROGRAM set|clear NAME VALUE. Started without a shell, with a time limit of a minute.
// Its output is only shown on failure, shortened and without secrets.
import { spawn } from 'node:child_process';
import { Fault } from '@tunnel/errors';
import { type Clock, maskText } from '@tunnel/runtime';
import { type DnsChallenges, isTextSeen } from './dns-challenges.ts';
import type { DnsLookups } from './lookups.ts';

/**
 * Time limit of the program in `[acme] dns_exec`.
 * @limit operator: Program of `[acme] dns_exec`, running time | the program is stopped and the order fails
 */
const HOOK_TIMEOUT_MS = 60_000;
/** Time after the exit for remaining output, or for a pipe held by a child of the program. */
const HOOK_DRAIN_MS = 500;
/** Maximum output of the operator's DNS program that an error shows. */
const HOOK_OUTPUT_MAX_BYTES = 1024;
/** Minimum length of a secret-like environment variable that is masked in the output. */
const HOOK_SECRET_MIN_CHARS = 6;

export interface ExecChallengesOptions {
  /** Path of the operator's DNS program: `[acme] dns_exec`. */
  readonly program: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly lookups: DnsLookups;
  readonly clock: Clock;
}

type Action = 'set' | 'clear';

/** Settings of the server, which contain secrets that the program must not see. */
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

  /** Kills running DNS programs with their child processes. */
  end(): void {
    for (const pid of this.#running) endGroup(pid);
  }

  #run(action: Action, name: string, value: string): Promise<void> {
    const { program, clock } = this.#options;
    const env = Object.fromEntries(Object.entries(this.#options.env).filter(([key]) => !OWN_VARIABLE.test(key)));
    return new Promise((resolve, reject) => {
      const outputs = [new OutputHead(), new OutputHead()] as const;
      // A separate process group, so that children of the program end with it.
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
        // The 'error' event is also emitted if a signal could not be sent. Then the DNS program keeps running.
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
    // The DNS program's process group is already empty.
  }
};

/** The beginning of the output. The rest is read and discarded, so that the program does not block. */
class OutputHead {
  readonly #chunks: Buffer[] = [];
  #room: number = HOOK_OUTPUT_MAX_BYTES;

  push(chunk: Buffer): void {
    if (this.#room <= 0) return;
    this.#chunks.push(Buffer.from(chunk.subarray(0, this.#room)));
    this.#room -= chunk.length;
  }

  /** Removes a partial secret at the cut, which the masking would not recognize. */
  text(secrets: readonly string[]): string {
    const text = Buffer.concat(this.#chunks).toString('utf8');
    if (this.#room >= 0) return text;
    const lost = Math.max(0, ...secrets.map((secret) => overlap(text, secret)));
    return text.slice(0, text.length - lost);
  }
}

/** Number of characters at the end of the text that are a proper prefix of the secret. */
const overlap = (text: string, secret: string): number => {
  for (let length = Math.min(text.length, secret.length - 1); length > 0; length -= 1) {
    if (text.endsWith(secret.slice(0, length))) return length;
  }
  return 0;
};

/** Secrets of the program, mostly in its environment. Longest first, because a secret may contain another. */
const secretsOf = (env: Readonly<Record<string, string | undefined>>): readonly string[] =>
  Object.entries(env)
    .flatMap(([key, value = '']) => (SECRET_VARIABLE.test(key) && value.length >= HOOK_SECRET_MIN_CHARS ? [value] : []))
    .toSorted((a, b) => b.length - a.length);

/** Returns the DNS program's output in one line, with secrets masked as in logs. */
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

// Judges the local settings: config file, API key, clock, local services and account.
import { type Finding, skipped } from './check.rules.ts';

/** Clock error from which the doctor warns. Certificates and sessions tolerate a smaller error. */
const DOCTOR_CLOCK_WARN_MS = 60_000;
/** Clock error above which sign-ins and certificate checks fail. */
const DOCTOR_CLOCK_FAIL_MS = 5 * 60_000;

export type ConfigFacts =
  | { readonly state: 'absent'; readonly file: string }
  | { readonly state: 'invalid'; readonly file: string; readonly problem: string }
  | { readonly state: 'read'; readonly file: string; readonly tunnels: number };

export const judgeConfig = (facts: ConfigFacts): Finding => {
  switch (facts.state) {
    case 'absent':
      return { status: 'ok', detail: `no ${facts.file}; using only flags and environment variables`, hint: '' };
    case 'invalid':
      return {
        status: 'fail',
        detail: facts.problem,
        hint: `Correct ${facts.file}, then check it with \`tunnel check\`.`,
      };
    case 'read':
      return {
        status: 'ok',
        detail: `${facts.file}, ${facts.tunnels} ${facts.tunnels === 1 ? 'tunnel' : 'tunnels'}`,
        hint: '',
      };
  }
};

export type KeyFileFacts =
  /** The API key was found. `source` names the flag, variable or file, never the key. */
  | { readonly state: 'found'; readonly source: string; readonly file: string | null; readonly mode: number | null }
  | { readonly state: 'missing' }
  | { readonly state: 'unreadable'; readonly problem: string };

/** Mode bits that let other users of the machine read a file. */
const OTHERS_MAY_READ = 0o044;

export const judgeKeyFile = (facts: KeyFileFacts): Finding => {
  if (facts.state === 'missing') {
    return {
      status: 'fail',
      detail: 'no API key',
      hint: 'Run `tunnel login`, or set TUNNEL_API_KEY.',
    };
  }
  if (facts.state === 'unreadable') {
    return {
      status: 'fail',
      detail: facts.problem,
      hint: 'Check that the file contains the API key and that you have permission to read it.',
    };
  }
  const { source, file, mode } = facts;
  if (file !== null && mode !== null && (mode & OTHERS_MAY_READ) !== 0) {
    return {
      status: 'warn',
      detail: `${source}; other users of this computer can read the file (mode ${(mode & 0o777).toString(8)})`,
      hint: `chmod 600 ${file}`,
    };
  }
  return { status: 'ok', detail: source, hint: '' };
};

/** `aheadMs` is the offset of the local clock from the server's clock. Null if the server did not send its time. */
export interface ClockFacts {
  readonly aheadMs: number | null;
}

export const judgeClock = ({ aheadMs }: ClockFacts): Finding => {
  if (aheadMs === null) return skipped('the server does not report its time');
  const off = Math.abs(aheadMs);
  if (off < DOCTOR_CLOCK_WARN_MS) return { status: 'ok', detail: `${seconds(off)} off`, hint: '' };
  return {
    status: off < DOCTOR_CLOCK_FAIL_MS ? 'warn' : 'fail',
    detail: `this computer is ${seconds(off)} ${aheadMs > 0 ? 'ahead of' : 'behind'} the server`,
    hint: 'Set the clock (timedatectl set-ntp true): certificates and sessions depend on it.',
  };
};

const seconds = (ms: number): string => {
  const whole = Math.round(ms / 1000);
  return whole < 120 ? `${whole} s` : `${Math.round(whole / 60)} min`;
};

export interface TargetFacts {
  readonly name: string;
  /** Local service for display, such as an address. */
  readonly target: string;
  /** Why the local service does not respond. Null if it responds. */
  readonly problem: string | null;
}

export const judgeTargets = (facts: readonly TargetFacts[]): Finding => {
  if (facts.length === 0) return skipped('no tunnel in config.yml has a local service');
  const dead = facts.filter(({ problem }) => problem !== null);
  if (dead.length === 0) {
    return { status: 'ok', detail: facts.map(({ name, target }) => `${name} ${target}`).join(', '), hint: '' };
  }
  return {
    status: 'fail',
    detail: dead.map(({ name, target, problem }) => `${name} ${target}: ${problem}`).join('; '),
    hint: `Start the local service of \`${dead[0]?.name}\`, or correct its address in config.yml.`,
  };
};

export type PlatformFacts =
  | { readonly state: 'no-login' }
  | { readonly state: 'reached'; readonly url: string }
  | { readonly state: 'session-over'; readonly url: string }
  | { readonly state: 'away'; readonly url: string; readonly problem: string };

/** Judges the platform connection. An unreachable platform is no failure, because tunnels work without the platform. */
export const judgePlatform = (facts: PlatformFacts): Finding => {
  switch (facts.state) {
    case 'no-login':
      return skipped('not signed in');
    case 'reached':
      return { status: 'ok', detail: `${facts.url}, signed in`, hint: '' };
    case 'session-over':
      return { status: 'warn', detail: `${facts.url}: the session has ended`, hint: 'Run `tunnel login` again.' };
    case 'away':
      return {
        status: 'warn',
        detail: `${facts.url}: ${facts.problem}`,
        hint: 'Tunnels work without the platform; `tunnel keys`, `usage` and `billing` need it.',
      };
  }
};

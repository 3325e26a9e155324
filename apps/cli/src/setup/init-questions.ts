// The questions of `tunnel init` at the terminal. The library for prompts is loaded with the first question, because no other command
// needs the library.
import { type Readable, Writable } from 'node:stream';
import type * as clack from '@clack/prompts';
import type { Io } from '../io/io.ts';
import { Interrupted } from '../io/terminal-prompt.ts';

type Prompts = typeof clack;

export interface WantedTunnel {
  readonly name: string;
  readonly proto: TunnelWord;
  readonly port: number;
}

export const TUNNEL_WORDS = ['http', 'https', 'tcp', 'udp'] as const;
export type TunnelWord = (typeof TUNNEL_WORDS)[number];

/** Checks typed text. Returns an error message, or null for valid text. */
export type Check = (text: string) => string | null;

export class InitQuestions {
  readonly #prompts: Prompts;
  readonly #streams: { readonly input: Readable; readonly output: Writable; readonly signal: AbortSignal };

  private constructor(prompts: Prompts, io: Pick<Io, 'stdin' | 'stderr'>) {
    this.#prompts = prompts;
    // Questions are printed to stderr, so that stdout can be piped.
    const input = io.stdin as Readable;
    this.#streams = { input, output: asStream(io.stderr), signal: endOf(input) };
  }

  static async open(io: Pick<Io, 'stdin' | 'stderr'>): Promise<InitQuestions> {
    return new InitQuestions(await import('@clack/prompts'), io);
  }

  async server(usual: string, check: Check): Promise<string> {
    const { text } = this.#prompts;
    const answer = await text({
      ...this.#streams,
      message: 'Server address (host:port of the control port)',
      placeholder: usual,
      defaultValue: usual,
      validate: (typed) => check(typed || usual) ?? undefined,
    });
    return this.#taken(answer);
  }

  async key(): Promise<string> {
    const { password } = this.#prompts;
    const answer = await password({
      ...this.#streams,
      message: 'API key (from `tunnel keys create` or the dashboard)',
      validate: (typed) => ((typed ?? '').trim() === '' ? 'An API key is required.' : undefined),
    });
    return this.#taken(answer).trim();
  }

  /** Asks for more tunnels until the user declines. */
  async tunnels(check: (tunnel: WantedTunnel) => string | null): Promise<WantedTunnel[]> {
    const { confirm } = this.#prompts;
    const wanted: WantedTunnel[] = [];
    for (;;) {
      const message = wanted.length === 0 ? 'Add a tunnel now?' : 'Add another tunnel?';
      const isMore = await confirm({ ...this.#streams, message, initialValue: wanted.length === 0 });
      if (!this.#taken(isMore)) return wanted;
      wanted.push(await this.#tunnel(wanted, check));
    }
  }

  async #tunnel(known: readonly WantedTunnel[], check: (tunnel: WantedTunnel) => string | null): Promise<WantedTunnel> {
    const { select, text } = this.#prompts;
    const options = TUNNEL_WORDS.map((value) => ({ value, label: value, hint: HINTS[value] }));
    const proto = this.#taken(await select({ ...this.#streams, message: 'Protocol of the local service', options }));
    const isPort = (typed = ''): boolean => /^\d{1,5}$/.test(typed) && Number(typed) >= 1 && Number(typed) <= 65_535;
    const typedPort = await text({
      ...this.#streams,
      message: 'Local port',
      validate: (typed) => (isPort(typed) ? undefined : 'Use a whole number from 1 to 65535.'),
    });
    const port = Number(this.#taken(typedPort));
    const usual = `${proto}-${port}`;
    const name = await text({
      ...this.#streams,
      message: 'Name of the tunnel',
      placeholder: usual,
      defaultValue: usual,
      validate: (typed) => {
        const wished = typed || usual;
        if (known.some((one) => one.name === wished)) return 'This name is already used.';
        return check({ name: wished, proto, port }) ?? undefined;
      },
    });
    return { name: this.#taken(name), proto, port };
  }

  #taken<T>(answer: T): Exclude<T, symbol> {
    if (this.#prompts.isCancel(answer)) throw new Interrupted();
    return answer as Exclude<T, symbol>;
  }
}

const HINTS: Readonly<Record<TunnelWord, string>> = {
  http: 'a web application, an API, a webhook',
  https: 'the same, for a local service with TLS',
  tcp: 'a database, SSH, any other TCP service',
  udp: 'DNS, a game, WireGuard',
};

/**
 * Returns a signal that aborts when no more answers can arrive: after Ctrl-D, or when the terminal has closed. Without the signal,
 * questions would wait forever.
 */
const endOf = (input: Readable): AbortSignal => {
  const ended = new AbortController();
  input.once('end', () => ended.abort());
  input.on('keypress', (_text: string | undefined, key: { readonly ctrl?: boolean; readonly name?: string } = {}) => {
    if (key.ctrl === true && key.name === 'd') ended.abort();
  });
  return ended.signal;
};

const asStream = (output: Io['stderr']): Writable => {
  const stream = new Writable({
    decodeStrings: false,
    write: (text: string | Buffer, _encoding, done) => {
      output.write(String(text));
      done();
    },
  });
  const { isTTY = true, columns, rows } = output;
  // A terminal of unknown size reports 0 columns, which would put one letter on each line.
  return Object.assign(stream, { isTTY, columns: columns || 80, rows: rows || 24 });
};

// Questions to the user at the terminal. Questions are printed to stderr, so that stdout can be piped.
import { createInterface, type Interface } from 'node:readline';
import { Writable } from 'node:stream';
import type { Io } from './io.ts';
import { misuse } from './problem-report.ts';

/** The error after Ctrl-C at a question. */
export class Interrupted extends Error {}

interface Waiting {
  resolve(line: string): void;
  reject(error: Error): void;
}

export class TerminalPrompt {
  readonly #io: Pick<Io, 'stdin' | 'stderr'>;
  readonly #lines: Interface;
  #echoes = false;
  #early: string[] = [];
  #waiting: Waiting | null = null;
  #end: Error | null = null;

  /** Creates a prompt. `instead` is a sentence about how to answer without a terminal. */
  constructor(io: Pick<Io, 'stdin' | 'stderr'>, instead: string) {
    requireTerminal(io, instead);
    this.#io = io;
    const echo = new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        if (this.#echoes) io.stderr.write(chunk.toString('utf8'));
        done();
      },
    });
    this.#lines = createInterface({ input: io.stdin, output: echo, terminal: true, historySize: 0 });
    this.#lines.on('line', (line) => this.#take(line));
    this.#lines.on('SIGINT', () => this.#fail(new Interrupted()));
    this.#lines.on('close', () => this.#fail(misuse(`no input. ${instead}`)));
  }

  ask(question: string): Promise<string> {
    return this.#question(question, true);
  }

  /** Asks a question without echoing the answer. */
  askSecret(question: string): Promise<string> {
    return this.#question(question, false);
  }

  close(): void {
    this.#lines.close();
  }

  async #question(question: string, echoes: boolean): Promise<string> {
    try {
      return await new Promise<string>((resolve, reject) => {
        const early = this.#early.shift();
        this.#echoes = echoes;
        // Readline must know the prompt, so that editing a long answer does not overwrite the prompt.
        this.#lines.setPrompt(echoes ? question : '');
        if (!echoes) this.#io.stderr.write(question);
        if (early !== undefined) {
          if (echoes) this.#io.stderr.write(`${question}\n`);
          return resolve(early);
        }
        if (this.#end !== null) return reject(this.#end);
        this.#waiting = { resolve, reject };
        this.#lines.prompt();
      });
    } finally {
      // The line break after a hidden answer was not echoed.
      if (!echoes || this.#end !== null) this.#io.stderr.write('\n');
    }
  }

  #take(line: string): void {
    // Echo stays off until the next question, because the text pasted after an email address is a password.
    this.#echoes = false;
    if (this.#waiting === null) this.#early.push(line);
    else this.#waiting.resolve(line);
    this.#waiting = null;
  }

  #fail(error: Error): void {
    this.#end ??= error;
    this.#waiting?.reject(this.#end);
    this.#waiting = null;
  }
}

/** Advice for a command that asks for confirmation without a terminal. */
export const ADD_YES = 'Add --yes to confirm.';

export const requireTerminal = ({ stdin }: Pick<Io, 'stdin'>, instead: string): void => {
  if (stdin.isTTY === true) return;
  throw misuse(`this command needs a terminal. ${instead}`);
};

/** Runs `ask` with a prompt, and always closes the prompt. An open prompt keeps the terminal in raw mode. */
export const withPrompt = async <T>(
  io: Pick<Io, 'stdin' | 'stderr'>,
  instead: string,
  ask: (prompt: TerminalPrompt) => Promise<T>,
): Promise<T> => {
  const prompt = new TerminalPrompt(io, instead);
  try {
    return await ask(prompt);
  } finally {
    prompt.close();
  }
};

/** Asks a yes-or-no question. Every answer except `y` and `yes` means no. */
export const askYesOrNo = async (io: Pick<Io, 'stdin' | 'stderr'>, question: string): Promise<boolean> => {
  const answer = await withPrompt(io, ADD_YES, (prompt) => prompt.ask(`${question} [y/N] `));
  return /^y(es)?$/i.test(answer.trim());
};

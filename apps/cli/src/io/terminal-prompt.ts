// Questions to the person at the terminal. They go to the error channel, so that the output can be piped.
import { createInterface, type Interface } from 'node:readline';
import { Writable } from 'node:stream';
import type { Io } from './io.ts';
import { misuse } from './problem-report.ts';

/** Ctrl-C at a question. */
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

  /** `instead`: how one answers without a terminal, a sentence. */
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

  /** Nothing of the answer is seen. */
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
        // Readline knows the prompt, so that editing a long answer does not draw over it.
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
      // The line break that ended the answer was not echoed with a hidden one.
      if (!echoes || this.#end !== null) this.#io.stderr.write('\n');
    }
  }

  #take(line: string): void {
    // Until the next question says else: what is pasted after an e-mail address is a password.
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

/** How a question of a command is answered without a terminal. */
export const ADD_YES = 'Add --yes to confirm.';

export const requireTerminal = ({ stdin }: Pick<Io, 'stdin'>, instead: string): void => {
  if (stdin.isTTY === true) return;
  throw misuse(`this command needs a terminal. ${instead}`);
};

/** With one prompt that is closed in any case: an open one keeps the terminal in its own mode. */
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

/** Asks for yes or no. Every answer but `y` and `yes` is a no. */
export const askYesOrNo = async (io: Pick<Io, 'stdin' | 'stderr'>, question: string): Promise<boolean> => {
  const answer = await withPrompt(io, ADD_YES, (prompt) => prompt.ask(`${question} [y/N] `));
  return /^y(es)?$/i.test(answer.trim());
};

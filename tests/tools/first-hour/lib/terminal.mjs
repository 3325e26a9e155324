// A terminal that a script types into and reads from, created with `script` of util-linux.
import { spawn, spawnSync } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { stripVTControlCharacters } from 'node:util';

const LOOK_EVERY_MS = 20;
/** Typing speed of a fast typist. */
const CHARACTERS_A_SECOND = 8;

export const CTRL_C = '\u0003';

export const hasTerminals = () => spawnSync('sh', ['-c', 'command -v script']).status === 0;

export class Terminal {
  #child;
  #screen = '';

  /** @param {{ command: string, cwd: string, env: NodeJS.ProcessEnv }} what */
  constructor({ command, cwd, env }) {
    this.#child = spawn('script', ['-qfec', `stty cols 200 rows 50; exec ${command}`, '/dev/null'], { cwd, env });
    this.#child.stdout.setEncoding('utf8').on('data', (text) => {
      this.#screen += text;
    });
    this.#child.stdin.on('error', () => {});
  }

  /** Sends the whole text at once, like pasted text. */
  type(text) {
    this.#child.stdin.write(text);
  }

  /** Types a line at a person's speed and presses Enter. */
  async enter(line) {
    for (const character of line) {
      this.type(character);
      await pause(1000 / CHARACTERS_A_SECOND);
    }
    this.type('\r');
  }

  forget() {
    this.#screen = '';
  }

  /** Whether the pattern appears on the screen within the time limit. */
  async shows(pattern, patienceMs) {
    const giveUpAt = performance.now() + patienceMs;
    while (!pattern.test(this.text)) {
      if (performance.now() > giveUpAt) return false;
      await pause(LOOK_EVERY_MS);
    }
    return true;
  }

  /** Waits for the pattern and returns its match. Throws an error with the screen's text after the time limit. */
  async waitFor(pattern, patienceMs) {
    if (await this.shows(pattern, patienceMs)) return pattern.exec(this.text);
    throw new Error(`${pattern} is not on the screen after ${patienceMs / 1000} s:\n${this.text.slice(-3000)}`);
  }

  get text() {
    return stripVTControlCharacters(this.#screen).replaceAll('\u0007', '');
  }

  /** Closes the terminal at once. The program in it gets a hangup. */
  close() {
    this.#child.kill('SIGKILL');
  }

  /** Interrupts the program in the terminal, lets it end in order, and leaves the shell. */
  async leave(patienceMs) {
    this.type(CTRL_C);
    this.type('exit\r');
    const giveUpAt = performance.now() + patienceMs;
    while (this.#child.exitCode === null && performance.now() < giveUpAt) await pause(LOOK_EVERY_MS);
    if (this.#child.exitCode === null) this.close();
  }
}

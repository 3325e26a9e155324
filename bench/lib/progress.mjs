// The progress line on stderr: rewritten in place on a terminal, otherwise a line per measurement. stdout is for figures.

const inPlace = Boolean(process.stderr.isTTY);

export class Progress {
  #total;
  #done = 0;
  #startedMs = Date.now();

  constructor(total) {
    this.#total = total;
  }

  begin(what) {
    if (inPlace) process.stderr.write(`\r\x1b[K[${this.#done + 1}/${this.#total}] ${this.#clock()}  ${what} …`);
  }

  end(what, outcome) {
    this.#done += 1;
    if (inPlace) return;
    process.stderr.write(`[${this.#done}/${this.#total}] ${this.#clock()}  ${what}: ${outcome}\n`);
  }

  /** Prints a permanent line. */
  say(line) {
    process.stderr.write(`${inPlace ? '\r\x1b[K' : ''}${line}\n`);
  }

  finish() {
    if (inPlace) process.stderr.write('\r\x1b[K');
  }

  #clock() {
    const seconds = Math.round((Date.now() - this.#startedMs) / 1000);
    const left = this.#done === 0 ? 0 : Math.round((seconds / this.#done) * (this.#total - this.#done));
    const text = (count) => `${Math.floor(count / 60)}:${String(count % 60).padStart(2, '0')}`;
    return this.#done === 0 ? text(seconds) : `${text(seconds)}, about ${text(left)} left`;
  }
}
